#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench-fabric`: four hosts write to a fifth, without DCQCN and with it.

The topology is incast.toml. Both runs are in a lossless priority (PFC). What counts is how long the
queue to the receiver is, and how fair the senders' shares are. A table goes to the standard output,
all samples and a plot to the build folder. The exit code is 1 if DCQCN misses the bar.
"""

import argparse
import itertools
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "vm"), str(TESTS.parent / "scripts")]

# pylint: disable=wrong-import-position
from incast import PFC_CLASS, jain, set_parameters, streams  # noqa: E402
from ternlab import topology  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.host import Options  # noqa: E402
from ternlab.lab import Lab  # noqa: E402
from ternlab.paths import BUILD  # noqa: E402
from ternlab.progress import say, step  # noqa: E402

TOPOLOGY = pathlib.Path(__file__).with_name("incast.toml")
PRIORITY = 3
INTERVAL = 0.01  # seconds between two samples
RATE_SPAN = 0.5  # seconds: a plotted rate is the mean of as many
# DCQCN needs about as many seconds until the senders' rates are stable: with the paper's g, alpha
# decays slowly from its first value, 1.
SETTLE = 15
# docs/fabric.md has the reasons.
DCQCN = {"rp_algorithm": 1, "rp_clamp_tgt_rate": 1, "rp_threshold": 5,
         "rp_time_reset": 55000, "rp_byte_reset": 10_000_000, "rp_ai_rate": 1, "rp_hai_rate": 5,
         "rp_dce_tcp_g": 1020, "rp_dce_tcp_rtt": 22000, "rp_rate_reduce_monitor_period": 20000,
         "np_min_time_between_cnps": 20000}
RUNS = {"PFC alone": {"rp_algorithm": 0}, "DCQCN": DCQCN}
# DCQCN's: the least share of the time below Kmax, the least Jain's index, and the least share of
# the link that is used, as the first two say nothing about a link that is idle.
BELOW_KMAX, FAIRNESS, USED = 0.9, 0.95, 0.7
# Programs that poll would take both processors of this machine from cards and switch. In this
# group they have a tenth of their guest's.
CGROUP = "/sys/fs/cgroup/seldom"


def kmax():
    """Bytes, from the topology."""
    kilobytes = re.search(r'kmax = "(\d+) KB"', TOPOLOGY.read_text(encoding="utf-8"))[1]
    return int(kilobytes) * 1000


def make_cgroup(host):
    host.run(f"""mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
                 echo +cpu >/sys/fs/cgroup/cgroup.subtree_control && mkdir {CGROUP} &&
                 echo 2000 20000 >{CGROUP}/cpu.max""")


class Samples:
    """The queue to the receiver and the senders' bytes over the fabric's time."""

    def __init__(self, lab):
        self.wire = lab.wire
        self.receiver, *self.senders = (host.options.edges[0][0] for host in lab.hosts)
        self.rate = None
        self.times, self.lengths, self.sent = [], [], []

    def take(self, seconds):
        """Of so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(INTERVAL)

    def look(self):
        told = topology.report(self.wire)
        ends = {}
        for link in told["links"]:
            for this, peer in (link["ends"], link["ends"][::-1]):
                ends[this["name"], peer["name"]] = this
                if this["name"] == self.receiver:
                    self.rate = link["rate"]
        queues = ends["tor", self.receiver]["queues"]
        self.times.append(told["now_ns"])
        self.lengths.append(next((queue["length"] for queue in queues
                                  if queue["priority"] == PRIORITY), 0))
        self.sent.append([ends[sender, "tor"]["tx_bytes"] for sender in self.senders])

    def rates(self, first=0, last=-1):
        """Mb/s of each sender between two samples."""
        took = self.times[last] - self.times[first]
        return [(now - was) * 8e3 / took for was, now in zip(self.sent[first], self.sent[last])]

    def seconds(self, index):
        return (self.times[index] - self.times[0]) / 1e9

    def below(self, length):
        """The share of the time with a shorter queue; a sample stands until the next one."""
        shorter = sum(until - since for since, until, each in
                      zip(self.times, self.times[1:], self.lengths) if each < length)
        return shorter / (self.times[-1] - self.times[0])

    def longest_of(self, share):
        """The queue that is not exceeded for that share of the time, bytes."""
        lasted = sorted((each, until - since) for since, until, each in
                        zip(self.times, self.times[1:], self.lengths))
        whole = self.times[-1] - self.times[0]
        sums = itertools.accumulate(time for _, time in lasted)
        return next(each for (each, _), upto in zip(lasted, sums) if upto >= share * whole)

    def results(self):
        rates = self.rates()
        return {"median_bytes": self.longest_of(0.5), "99_percent_bytes": self.longest_of(0.99),
                "below_kmax": self.below(kmax()), "jain": jain(rates),
                "used": sum(rates) * 1e6 / self.rate, "mbps": rates}

    def to_json(self):
        return {"times_ns": self.times, "lengths": self.lengths, "sent_bytes": self.sent}


def run(lab, parameters, seconds):
    lab.each(lambda host: set_parameters(
        host, pfc_enable=1 << PRIORITY, pfc_trust_dscp=1, **parameters))
    samples = Samples(lab)
    receiver, *senders = lab.hosts
    with streams(receiver, senders, f"--tclass={PFC_CLASS}", CGROUP):
        time.sleep(SETTLE)
        samples.take(seconds)
    return samples


def table(results):
    lines = [f"{'':12}{'queue, KB: median':>18}{'99 %':>8}{'below Kmax':>12}{'Jain':>8}"
             f"{'link used':>11}  Mb/s of each sender"]
    for name, of in results.items():
        lines.append(f"{name:12}{of['median_bytes'] / 1e3:18.0f}{of['99_percent_bytes'] / 1e3:8.0f}"
                     f"{of['below_kmax']:12.1%}{of['jain']:8.3f}{of['used']:11.1%}  "
                     + " ".join(f"{rate:.1f}" for rate in of["mbps"]))
    return "\n".join(lines)


def verdict(of):
    """Whether the bar is met, and the line that says so."""
    met = of["below_kmax"] >= BELOW_KMAX and of["jain"] >= FAIRNESS and of["used"] >= USED
    return met, (f"DCQCN {'meets' if met else 'MISSES'} the bar: below Kmax for {BELOW_KMAX:.0%} "
                 f"of the time, Jain's index {FAIRNESS}, {USED:.0%} of the link used")


def write_data(samples, name, folder):
    """Two files for gnuplot: the queue and the rates over time."""
    queue, rates = (folder / f"incast-{name.replace(' ', '-')}-{what}.dat"
                    for what in ("queue", "rates"))
    queue.write_text("".join(f"{samples.seconds(i):.4f}\t{length / 1e3:.1f}\n"
                             for i, length in enumerate(samples.lengths)), encoding="ascii")
    lines, first = [], 0
    for last in range(len(samples.times)):
        if samples.seconds(last) - samples.seconds(first) >= RATE_SPAN:
            lines.append("\t".join(f"{value:.3f}" for value in (
                samples.seconds(last), *samples.rates(first, last))) + "\n")
            first = last
    rates.write_text("".join(lines), encoding="ascii")
    return queue, rates


def plot(runs, folder):
    """incast.svg: queue and rates over time, a row for each run."""
    picture = folder / "incast.svg"
    script = ['set terminal svg size 1000,700 background "white"', f'set output "{picture}"',
              "set multiplot layout 2,2", "set grid", "set xlabel 's'", "set yrange [0:*]",
              "set key outside"]
    for name, samples in runs.items():
        queue, rates = write_data(samples, name, folder)
        script += [f'set title "{name}: the queue to the receiver, KB"',
                   f'plot "{queue}" using 1:2 with lines notitle, {kmax() / 1e3} title "Kmax"',
                   f'set title "{name}: rates of the senders, Mb/s"',
                   "plot " + ", ".join(f'"{rates}" using 1:{column} with lines title "{sender}"'
                                       for column, sender in enumerate(samples.senders, 2))]
    subprocess.run(["gnuplot"], input="\n".join(script), text=True, check=True)
    return picture


def measure(seconds):
    """The samples of each run."""
    lab, runs = Lab("bench-fabric"), {}
    try:
        lab.up(topology.hosts(TOPOLOGY, Options(smp=1)), owned=True, topology=TOPOLOGY)
        lab.each(make_cgroup)
        for name, parameters in RUNS.items():
            with step(name):
                runs[name] = run(lab, parameters, seconds)
    finally:
        lab.down()
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=20, help="of samples; default %(default)s")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        runs = measure(args.seconds)
    except LabError as error:
        print(f"make bench-fabric failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    results = {name: samples.results() for name, samples in runs.items()}
    met, line = verdict(results["DCQCN"])
    (folder / "incast.json").write_text(json.dumps(
        {name: {"parameters": RUNS[name], "results": results[name], "samples": samples.to_json()}
         for name, samples in runs.items()}), encoding="ascii")
    text = f"{table(results)}\n\n{line}"
    (folder / "incast.txt").write_text(text + "\n", encoding="ascii")
    print(text, flush=True)
    say(f"all samples: {folder / 'incast.json'}; plot: {plot(runs, folder)}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
