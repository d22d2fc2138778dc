# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts in a topology (docs/fabric.md): rates, ECN with DCQCN, PFC, links that fail, two paths.

No bound says how fast a machine has to be: what is compared are the links' rates and runs on the
same machine.
"""

import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import roce_capture
import vlans
from scenario import LabError, NETDEV, Options, Scenario, main, pair, wait_until
from incast import PFC_CLASS, get_parameters, is_paced, jain, set_parameters, streams
from ternlab import topology
from ternlab.host import DEFAULT_WIRE
from ternlab.paths import SCRIPTS

HERE = pathlib.Path(__file__).resolve().parent
LAB = SCRIPTS / "lab"
TOPOLOGY = HERE / "fabric.toml"
RATE = 200e6
# How much of a link the hosts use depends on how busy the machine is; `make bench-fabric` measures
# it. Here nobody stands still or stays at the rate to which DCQCN goes down (1 Mb/s), and none of
# three senders is left out, which would be an index of 0.67.
LEAST_RATE, FAIR = 10e6, 0.8
# As the rates are hundreds of times less than those that mlx5's parameters are for, the steps of
# DCQCN are slower.
SLOW_DCQCN = {"rp_time_reset": 10000, "rp_byte_reset": 0, "rp_ai_rate": 1, "rp_hai_rate": 5,
              "rp_dce_tcp_rtt": 2000, "rp_rate_reduce_monitor_period": 5000,
              "np_min_time_between_cnps": 2000}
ACKNOWLEDGE = 0x11  # IBA vol. 1, table 38
VLAN = 9
# The two ways between the leaves, by which the second cards of hosts a and b are linked.
SPINES = ("spine1", "spine2")


def lab(*words):
    return subprocess.run([LAB, *words], capture_output=True, text=True, check=False)


def edge(host, card=0):
    """The name of a card in the topology."""
    return host.options.edges[card][0]


class Fabric(Scenario):
    TOPOLOGY = TOPOLOGY

    @classmethod
    def setUpClass(cls):
        cls.HOSTS = topology.hosts(TOPOLOGY, Options())
        super().setUpClass()
        cls.receiver, *cls.senders = cls.hosts

    # --- what the fabric tells

    def end(self, name, peer, told=None):
        """The counters of the port of NAME at its link to PEER, now or in a report."""
        for link in (told or topology.report(self.lab.wire))["links"]:
            for this, other in (link["ends"], link["ends"][::-1]):
                if (this["name"], other["name"]) == (name, peer):
                    return this
        raise AssertionError(f"no link between {name} and {peer}")

    def bottleneck(self, priority):
        """The queue to the receiver."""
        return self.queue("tor", edge(self.receiver), priority)

    def queue(self, name, peer, priority):
        end = self.end(name, peer)
        empty = dict.fromkeys(("frames", "bytes", "marked", "dropped", "max_length"), 0)
        return next((queue for queue in end["queues"] if queue["priority"] == priority), empty)

    def pfc_dropped(self):
        return sum(switch["pfc_dropped"] for switch in topology.report(self.lab.wire)["switches"])

    # --- cards' parameters and counters

    def set_all(self, **parameters):
        self.lab.each(lambda host: set_parameters(host, **parameters))

    def restore_in_the_end(self, *names):
        for host in self.hosts:
            self.addCleanup(set_parameters, host, **get_parameters(host, names))

    # --- streams to the receiver

    @contextlib.contextmanager
    def streams(self, senders, arguments=""):
        """streams() that have begun."""
        with streams(self.receiver, senders, arguments):
            for sender in senders:
                self.await_stream(sender, 2 << 20)
            yield

    def sent(self, sender, told=None):
        return self.end(edge(sender), "tor", told)["tx_bytes"]

    def await_stream(self, sender, amount):
        before = self.sent(sender)
        self.assertTrue(wait_until(lambda: self.sent(sender) - before > amount, 60),
                        f"{sender.name} sends nothing")

    def measure(self, senders, seconds=4):
        """The rate of each sender in bits per second, while streams run."""
        def look(sender):
            told = topology.report(self.lab.wire)
            return told["now_ns"], self.sent(sender, told)

        before = [look(sender) for sender in senders]
        time.sleep(seconds)
        after = [look(sender) for sender in senders]
        return [(later - sent) * 8e9 / (ended - begun)
                for (begun, sent), (ended, later) in zip(before, after)]

    # --- tests

    def test_rate(self):
        """A stream goes on, and takes no more than its link."""
        with self.streams(self.senders[:1]):
            for _ in range(self.CHANCES):
                rate, = self.measure(self.senders[:1])
                if rate > LEAST_RATE:
                    break
        self.assertLess(rate, 1.01 * RATE)
        self.assertGreater(rate, LEAST_RATE)

    def incast(self, settle, paced):
        """Three senders in a lossless priority, all of which congestion control slows down if paced
        is set. Returns their rates, and what the counters of their queue have grown by."""
        before = self.bottleneck(3)
        with self.streams(self.senders, f"--tclass={PFC_CLASS}"):
            time.sleep(settle)
            rates = self.measure(self.senders, 6)
            for host in self.senders:
                self.assertEqual(bool(wait_until(lambda: is_paced(host), 30 if paced else 1)),
                                 paced, host.name)
        after = self.bottleneck(3)
        self.assertEqual(after["dropped"], before["dropped"])
        self.assertEqual(self.pfc_dropped(), 0)
        return rates, {name: after[name] - before[name] for name in before}

    def good_incast(self, settle, paced, good):
        """incast(), again up to three times if its rates are not good: on a busy machine a sender
        may wait for a processor for most of the seconds that are measured."""
        for _ in range(4):
            rates, grown = self.incast(settle, paced)
            if good(rates):
                break
        return rates, grown

    def pauses(self):
        """Those that the switch has sent to senders, and those that their ports received."""
        told = topology.report(self.lab.wire)
        return [sum(self.end(*ends, told)[name][3] for ends in links) for name, links in (
            ("pauses_sent", [("tor", edge(host)) for host in self.senders]),
            ("pauses_received", [(edge(host), "tor") for host in self.senders]))]

    @staticmethod
    def pauses_of(host):
        """Pause frames of priority 3 that the host's card has obeyed."""
        return int(re.search(r"rx_prio3_pause: (\d+)", host.run(f"ethtool -S {NETDEV}").out)[1])

    def test_incast(self):
        """With PFC alone nothing is lost, and senders are paused. With DCQCN, too, they are told
        by CNPs, slow down, and are fair. `make bench-fabric` measures how short their queue is."""
        self.restore_in_the_end("pfc_enable", "pfc_trust_dscp", "rp_algorithm", *SLOW_DCQCN)
        sent = self.pauses()[0]
        before = [self.pauses_of(host) for host in self.senders]
        self.set_all(pfc_enable=1 << 3, pfc_trust_dscp=1, rp_algorithm=0)
        rates, grown = self.good_incast(0, False, lambda rates: min(rates) > LEAST_RATE)
        # One may be on a link when the report is made.
        self.assertTrue(wait_until(lambda: len(set(self.pauses())) == 1, 20), self.pauses())
        self.assertGreater(self.pauses()[0], sent)
        for host, was in zip(self.senders, before):
            self.assertGreater(self.pauses_of(host), was)
        self.assertEqual(grown["marked"], 0, "senders that do not react are not capable of ECN")
        self.assertGreater(min(rates), LEAST_RATE)

        before = [host.hw_counter("rp_cnp_handled") for host in self.senders]
        self.set_all(rp_algorithm=1, **SLOW_DCQCN)
        rates, grown = self.good_incast(
            6, True, lambda rates: min(rates) > LEAST_RATE and jain(rates) >= FAIR)
        self.assertGreater(grown["marked"], 0)
        for host, was in zip(self.senders, before):
            self.assertGreater(host.hw_counter("rp_cnp_handled"), was)
        self.assertGreater(min(rates), LEAST_RATE)
        self.assertGreaterEqual(jain(rates), FAIR, rates)

    def test_priority_of_a_tag(self):
        """A QP's service level is the priority in its packets' VLAN tags, and so that of queues and
        pauses; their DSCP has priority 0."""
        self.restore_in_the_end("pfc_enable", "rp_algorithm")
        self.set_all(pfc_enable=1 << 3, rp_algorithm=0)
        before, pauses = self.bottleneck(3), [self.pauses_of(host) for host in self.senders]
        with vlans.added(self.hosts, VLAN) as addresses:
            with streams(self.receiver, self.senders, "--sl=3", addresses=addresses):
                self.assertTrue(wait_until(lambda: all(
                    self.pauses_of(host) > was for host, was in zip(self.senders, pauses)), 60))
        self.assertGreater(self.bottleneck(3)["frames"], before["frames"])
        self.assertEqual(self.bottleneck(3)["dropped"], before["dropped"])

    def shares(self):
        """What two queues to a slow link send in some seconds, in bytes: of priority 4, which has
        the weight 3, and of priority 2, which has 1. What each sender has under way is less than
        its queue takes, so nothing is lost. The link needs longer to send that than a sender
        usually waits for a processor, so neither queue runs empty."""
        first, second, _, receiver = self.hosts

        def sent():
            return [self.queue("leaf2", edge(receiver, 1), priority)["bytes"]
                    for priority in (4, 2)]

        with contextlib.ExitStack() as running:
            for port, (priority, sender) in enumerate(((4, first), (2, second)), 18600):
                running.enter_context(streams(
                    receiver, [sender], f"-t 5 --tclass={priority * 8 << 2}", card=1, port=port))
            begin = sent()
            self.assertTrue(wait_until(lambda: all(
                now > was + (1 << 18) for now, was in zip(sent(), begin)), 60), sent())
            before = sent()
            time.sleep(4)
            return [now - was for now, was in zip(sent(), before)]

    def test_weights(self):
        """Queues that are not empty share the link by their weights: 3 to 1."""
        for host in self.hosts:
            self.addCleanup(set_parameters, host, 1, **get_parameters(host, ["rp_algorithm"], 1))
            set_parameters(host, 1, rp_algorithm=0)
        for _ in range(self.CHANCES):
            heavy, light = self.shares()
            # On a busy machine a sender may wait for a processor, and its queue is empty then.
            if 2.4 * light < heavy < 3.6 * light:
                break
        self.assertGreater(heavy, 2.4 * light)
        self.assertLess(heavy, 3.6 * light)

    def test_bad_link(self):
        """One that loses frames and delays them by chance, in both directions: all data arrive."""
        near, far = self.hosts[0], self.hosts[2]
        ends = [("c.2", "leaf1"), ("leaf1", "c.2")]

        def lost():
            told = topology.report(self.lab.wire)
            return [self.end(*end, told)["lost"] for end in ends]

        def command(host):
            device = host.rdma_device(card=1)
            return (f"ib_write_bw -b -u {pair.ACK_TIMEOUT} -s 65536 -n 100 -d {device} "
                    f"-x {host.gid_index(device, host.addresses(1)[0])}")

        before = lost()
        said = far.run(f"ping -q -i 0.2 -c 20 -w 30 {near.addresses(1)[0]}", check=False).out
        least, _, most, _ = map(float, re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+)",
                                                 said).groups())
        self.assertGreater(most - least, 10, said)
        pair.perftest(near, far, command(near), command(far))
        self.assertTrue(all(now > was for now, was in zip(lost(), before)), lost())

    def answers(self, asking, asked, patience):
        """Whether a ping comes back: the first one, or a later one within patience seconds."""
        return bool(wait_until(lambda: asking.run(
            f"ping -q -w 2 -c 1 {asked.name}", check=False).code == 0, patience))

    def test_cable(self):
        """A card's cable out and in again."""
        one, two = self.hosts[:2]
        for action, carrier in (("off", "0"), ("on", "1")):
            self.order("cable", two.name, action)
            self.await_carrier(carrier, two)
            self.assertEqual(self.answers(one, two, 20 if action == "on" else 0), action == "on")

    def connect(self, server, client):
        """rping by RDMA CM between their second cards."""
        address = server.addresses(1)[0]
        serving = server.spawn(f"rping -s -a {address} -C 5")
        pair.await_cm_listener(server, 7174, serving)
        client.run(f"rping -c -a {address} -C 5")
        serving.wait()

    def frames_of_spines(self):
        return [self.end("leaf1", spine)["tx_frames"] for spine in SPINES]

    def test_two_paths(self):
        """Connections spread over both spines. With the link to one cut, all take the other."""
        one, two = self.hosts[:2]
        before = self.frames_of_spines()

        def both_used():
            self.connect(one, two)
            return all(now > was for now, was in zip(self.frames_of_spines(), before))

        self.assertTrue(any(both_used() for _ in range(20)), self.frames_of_spines())
        self.addCleanup(lab, "--lab", self.lab.name, "link", "leaf1", "spine1", "on")
        self.order("link", "leaf1", "spine1", "off")
        before = self.frames_of_spines()
        for _ in range(2):
            self.connect(one, two)
        after = self.frames_of_spines()
        self.assertEqual(after[0], before[0])
        self.assertGreater(after[1], before[1])

    def test_group(self):
        """What is sent to a group arrives once, over the leaves and whichever spine is there."""
        one, two = self.hosts[:2]
        self.addCleanup(lab, "--lab", self.lab.name, "link", "leaf1", "spine1", "on")
        for spine in ("on", "off"):
            self.order("link", "leaf1", "spine1", spine)
            self.send_to_group(one, two)

    @staticmethod
    def send_to_group(sender, receiver, count=20):
        """mckey between their second cards. The receiver ends when it has got all."""
        def command(host):
            return f"stdbuf -oL mckey -m 239.1.2.3 -C {count} -S 500 -b {host.addresses(1)[0]}"

        listening = receiver.spawn(command(receiver))
        try:
            if not wait_until(lambda: "joined" in listening.output(), 20):
                raise LabError(listening.output())
            sender.run(f"{command(sender)} -s")
            listening.wait(timeout=20)
        finally:
            listening.give_up()

    def order(self, *words):
        """A command to this lab, which has to succeed. Returns what it prints."""
        told = lab("--lab", self.lab.name, *map(str, words))
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        return told.stdout

    def test_faults_of_a_link(self):
        """Rules act on the link and in the direction that they name. A capture there has comments
        and one direction alone; a capture at cards has both."""
        one, two = self.hosts[:2]
        there, back = self.lab.logs / "there.pcapng", self.lab.logs / "cards.pcapng"
        self.addCleanup(lab, "--lab", self.lab.name, "faults", "--clear")
        drop, mark = "link=a.1:tor opcode=WRITE psn=+4", "link=a.1:tor opcode=WRITE psn=+6"
        self.order("faults", "--drop", drop, "--once")
        self.order("faults", "--mark", f"{mark} retransmission=no", "--once")
        self.order("faults", "--drop", "link=tor:a.1 opcode=WRITE")  # nobody writes to it
        seen = {}
        for path, options in ((there, ("--link", "a.1:tor")), (back, ())):
            self.order("capture", "start", path, *options)
            # Without a device it takes either card's.
            command = "ib_write_bw -n 5 -s 16384 -d"
            pair.run_pair(two, f"{command} {two.rdma_device()}", one,
                          f"{command} {one.rdma_device()} {two.ipv4}")
            self.order("capture", "stop")
            seen[path] = roce_capture.packets(path)
            if path == there:
                rules = self.order("faults").splitlines()
        comments = {packet.comments[0].split(", rule")[0]: packet for packet in seen[there]
                    if packet.comments}
        self.assertEqual(list(comments), ["fault: drop", "fault: mark"])
        lost = comments["fault: drop"].psn
        self.assertEqual((comments["fault: mark"].psn - lost) & 0xffffff, 2)
        self.assertIn(", on a.1:tor", comments["fault: drop"].comments[0])
        self.assertEqual([rule.split(": ")[2] for rule in rules],
                         ["matched 1, hit 1, will not act again"] * 2 + ["matched 0, hit 0"])
        # The capture of one direction has no acknowledgements.
        kinds = {packet.opcode for packet in seen[there]}
        self.assertNotIn(ACKNOWLEDGE, kinds)
        self.assertIn(ACKNOWLEDGE, {packet.opcode for packet in seen[back]})
        log = [json.loads(line) for line in self.order("faults", "--log").splitlines()]
        self.assertEqual([(entry["action"], entry["link"]) for entry in log[-2:]],
                         [("drop", "a.1:tor"), ("mark", "a.1:tor")])
        refused = lab("--lab", self.lab.name, "faults", "--drop", "link=tor:leaf1")
        self.assertEqual(refused.returncode, 1)
        self.assertIn('link: there is no link "tor:leaf1"', refused.stderr)

    def test_command(self):
        """What a person sees."""
        self.assertRegex(self.order("fabric"), r"\na\.1 to tor +200 +up ")
        refused = lab("--lab", self.lab.name, "link", "leaf1", "leaf2", "off")
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn('there is no link between switches "leaf1" and "leaf2"', refused.stderr)

    @unittest.skipUnless(DEFAULT_WIRE == "shm", "QEMU 7.2 does not reconnect a stream")
    def test_switch_dies(self):
        """It comes back with the topology as the file has it, and the hosts connect again."""
        one, two = self.hosts[:2]
        self.addCleanup(self.order, "link", "leaf1", "spine1", "on")
        self.order("link", "leaf1", "spine1", "off")
        self.kill_switch()
        self.await_switch()
        self.assertTrue(self.answers(one, two, 20))
        self.assertGreater(self.sent(one), 0)
        self.assertTrue(all(link["up"] for link in topology.report(self.lab.wire)["links"]))

    def test_bad_topology(self):
        """File, line and key of what is wrong, from the lab as well."""
        good = TOPOLOGY.read_text(encoding="utf-8")
        lines = good.count("\n")
        for text, wrong in (
                ("[[link]]\nends = ['d.1', 'tor9']\n",
                 f"{lines + 2}: link.ends: there is no host or switch \"tor9\""),
                ("[[host]]\nname = 'd'\n", f"{lines + 2}: host.name: there is a \"d\" already"),
                ("[[link]]\nends = ['tor', 'leaf1']\nrate = '0 Mb/s'\n",
                 f"{lines + 3}: link.rate: must be from 1 Mb/s to 1000000 Gb/s")):
            with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
                file.write(good + text)
                file.flush()
                told = lab("--lab", "never", "up", "--topology", file.name)
                self.assertEqual((told.returncode, told.stdout), (1, ""))
                self.assertEqual(told.stderr, f"lab: {file.name}:{wrong}\n")


if __name__ == "__main__":
    main()
