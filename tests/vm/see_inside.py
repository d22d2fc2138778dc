# SPDX-License-Identifier: GPL-2.0-or-later
"""terntop and terntrace in a guest: what they tell of programs is compared with what these programs
say of themselves, and neither leaves anything behind."""

import contextlib
import json
import math
import re
import subprocess

from agent import Agent
from programs import Programs
from scenario import NETDEV, Options, main, wait_until
from ternlab.paths import BUILD

TOP = "/tmp/terntop.json"
ERRORS = "/tmp/tool.errors"
INTERVAL = 0.2
MEASURED, MARGIN = 8, 1  # seconds that perftest measures, and that it leaves out at each end
PORT = 9417
RESTS = ("90", 0)  # a probe without observer: a nop, and a semaphore of zero
PROVIDER = BUILD / "cmake/userspace/provider/libtern.so.1"
PROBE = re.compile(r"Name: (\w+)\s+Location: 0x(\w+), .*Semaphore: 0x(\w+)")

# Byte at a probe and semaphore of it, as process PID has them in its memory.
LOOK = """
import sys
pid, probe, semaphore = sys.argv[1], int(sys.argv[2], 16), int(sys.argv[3], 16)
with open(f"/proc/{pid}/maps") as maps:
    base = min(int(line.split("-")[0], 16) for line in maps if "libtern.so" in line)
with open(f"/proc/{pid}/mem", "rb", 0) as memory:
    memory.seek(base + probe)
    code = memory.read(1).hex()
    memory.seek(base + semaphore)
    print(code, int.from_bytes(memory.read(2), "little"))
"""


class SeeInside(Programs):
    # As in inside.py: trace events and several processors of QEMU 7.2 do not go together.
    HOSTS = (Options(smp=1), Options(smp=1))

    def setUp(self):
        super().setUp()
        self.host, self.peer = self.hosts[:2]

    # --- programs and tools

    def exchange(self, agents, qpns, rounds=5):
        """SENDs, WRITEs, a READ and an atomic, each of which completes."""
        one, two = agents
        far = {"rkey": two.rkey, "address": two.address}
        two.receive(local=qpns[1], offset=0, length=4096, count=rounds)
        one.send(local=qpns[0], opcode="SEND", length=100, count=rounds)
        one.completions(local=qpns[0], kind="send", count=rounds)
        one.send(local=qpns[0], opcode="WRITE", length=3000, count=rounds, **far)
        one.completions(local=qpns[0], kind="send", count=rounds)
        one.send(local=qpns[0], opcode="READ", length=500, **far)
        one.send(local=qpns[0], opcode="FETCH_ADD", length=8, compare_add=1, **far)
        one.completions(local=qpns[0], kind="send", count=2)
        two.completions(local=qpns[1], kind="recv", count=rounds)

    @contextlib.contextmanager
    def top(self, options=f"--interval {INTERVAL}", host=None):
        """A list that has the lines of terntop in the end, of a time that holds the block."""
        host = host or self.host
        lines = []
        host.run(f"rm -f {TOP}")
        task = host.spawn(f"exec terntop --json {options} >{TOP}")

        def begun():
            return task.failed() or host.run(f"test -s {TOP}", check=False).code == 0

        try:
            self.assertTrue(wait_until(begun, 30))
            yield lines
        finally:
            task.kill("INT")
            task.wait()
        lines += map(json.loads, host.run(f"cat {TOP}").out.splitlines())

    @contextlib.contextmanager
    def trace(self, options, host=None):
        """A list with stdout and stderr of terntrace in the end."""
        host = host or self.host
        said = []
        host.run(f"rm -f {ERRORS}")  # where the last one has said that it was attached
        task = host.spawn(f"exec terntrace {options} >/tmp/trace 2>{ERRORS}")

        def attached():
            return task.failed() or "attached" in host.run(f"cat {ERRORS}", check=False).out

        try:
            self.assertTrue(wait_until(attached, 30))
            yield said
        finally:
            task.kill("INT")
            task.wait()
        said += [host.run(f"cat {name}").out for name in ("/tmp/trace", ERRORS)]

    def assert_refused(self, command, expression, code=1):
        """One line on stderr, nothing on stdout."""
        done = self.host.run(f"{command} 2>{ERRORS}", check=False)
        said = self.host.run(f"cat {ERRORS}").out
        self.assertEqual((done.code, done.out), (code, ""), said)
        self.assertRegex(said, rf"^tern(top|trace): {expression}\n$")

    @staticmethod
    def find(line, program, qpn=None):
        """The QPs of the program in a line of terntop."""
        return [qp for qp in line["qps"]
                if qp["program"] == program and qpn in (None, qp["qp"])]

    def last(self, lines, program, qpn=None):
        """The only QP of the program, as it was told of last."""
        found = [qp for line in lines for qp in self.find(line, program, qpn)]
        self.assertTrue(found, lines[-1:])
        return found[-1]

    # --- terntop

    def check_counts(self, program, operation, size, side=1, more=""):
        """Each message that perftest says it has sent is counted, with all its bytes."""
        count = 3000
        with self.top(host=self.hosts[side]) as lines:
            self.perftest(program, f"-s {size} -n {count} {more}")
        counted = self.last(lines, program)["operations"][operation]
        self.assertEqual((counted["messages"], counted["bytes"]), (count, count * size))

    def test_counts(self):
        self.check_counts("ib_write_bw", "write", 4096)
        self.check_counts("ib_write_bw", "write", 100, more="-I 128")  # inline
        self.check_counts("ib_send_bw", "send", 2000)
        self.check_counts("ib_send_bw", "recv", 2000, side=0)
        self.check_counts("ib_read_bw", "read", 65536)
        self.check_counts("ib_atomic_bw", "atomic", 8)

    def told(self, lines, program, operation):
        """Each interval in ms, and the messages of the QP at its end. perftest may have run more
        than once (pair.SPREAD): of the last run."""
        told = []
        for line in lines:
            for qp in self.find(line, program):
                if operation not in qp["operations"]:
                    continue
                messages = qp["operations"][operation]["messages"]
                if told and messages < told[-1][1]:
                    told.clear()
                told.append((line["interval_ms"], messages))
        return told

    @staticmethod
    def rates(told):
        """The messages in a second of each period of MEASURED seconds. It ends with an interval."""
        for begin, (_, before) in enumerate(told):
            passed = 0
            for interval, messages in told[begin + 1:]:
                passed += interval
                if passed >= MEASURED * 1000:
                    yield (messages - before) * 1000 / passed
                    break

    def measure(self, program, operation):
        """What terntop tells of a run, by how much its nearest rate differs from perftest's, and
        what that is made from."""
        arguments = f"-s 1024 -D {MEASURED + 2 * MARGIN} -f {MARGIN}"
        with self.top(host=self.peer) as lines:
            (row,) = self.perftest(program, arguments)
        told = self.told(lines, program, operation)
        rates = list(self.rates(told))
        deviation = min((abs(rate / (row[4] * 1e6) - 1) for rate in rates), default=math.inf)
        return lines, deviation, (rates, row, told)

    def test_rates(self):
        """One of the periods that are as long as perftest's has its average, within 5 %. Nobody
        tells which of them perftest measures. A busy machine may change the rate tenfold in the
        midst of it, and then it runs again."""
        for program, operation in (("ib_write_bw", "write"), ("ib_send_bw", "send")):
            with self.subTest(program):
                for _ in range(self.CHANCES):
                    lines, deviation, told = self.measure(program, operation)
                    if deviation < 0.05:
                        break
                self.assertLess(deviation, 0.05, told)
                latency = self.last(lines, program)["latency"]
                self.assertGreater(latency["count"], 0)
                self.assertLessEqual(latency["p50_ns"], latency["p99_ns"])
                self.assertEqual(sum(number for _, number in latency["histogram"]),
                                 latency["count"])

    def test_operations(self):
        """Of one QP, with what waits, errors and queues."""
        with self.top() as lines, self.connected() as (agents, qpns):
            self.exchange(agents, qpns)
            agents[0].send(local=qpns[0], opcode="SEND", length=10)  # no receive: it waits

            def told():
                text = self.host.run(f"tail -n 1 {TOP}").out
                return '"outstanding":1' in text and re.search(r'"rcvd_rnr_err":[1-9]', text)

            self.assertTrue(wait_until(told, 20))
        qp = self.last(lines, "python3", qpns[0])
        self.assertEqual({name: (of["messages"], of["bytes"])
                          for name, of in qp["operations"].items()},
                         {"send": (6, 510), "write": (5, 15000), "read": (1, 500),
                          "atomic": (1, 8)})
        self.assertEqual((qp["device"], qp["latency"]["count"]),
                         (self.devices[self.host.name], 12))
        waited = [self.find(line, "python3", qpns[0]) for line in lines]
        self.assertIn(1, [qp["outstanding"] for (qp,) in filter(None, waited)])

    def await_outstanding(self, qpn, number):
        """Until terntop tells so of the agent's QP."""
        said = rf'"qp":{qpn},((?!"qp":).)*"outstanding":{number},'
        self.assertTrue(wait_until(
            lambda: re.search(said, self.host.run(f"tail -n 1 {TOP}").out), 20), said)

    def test_what_ends_without_a_completion(self):
        """Requests of a QP that is reset or destroyed, while its process goes on."""
        for end in ("reset", "destroy"):
            with self.subTest(end), self.top(), self.connected() as (agents, qpns):
                agent, qpn = agents[0], qpns[0]
                agent.send(local=qpn, opcode="SEND", length=10, count=3)  # no receive: they wait
                self.await_outstanding(qpn, 3)
                getattr(agent, end)(local=qpn)
                self.await_outstanding(qpn, 0)

    def reload(self):
        """The driver destroys all QPs in the process of devlink, and resets the card."""
        self.host.run(f"devlink dev reload pci/{self.host.pci()}")
        self.host.configure()
        self.host.gid_index(self.devices[self.host.name])

    def await_waiting(self, qpn, numbers):
        """Until terntop tells of QPs of the number, in each of which so many requests wait."""
        def told():
            with contextlib.suppress(ValueError):  # the line may be incomplete
                line = json.loads(self.host.run(f"tail -n 1 {TOP}").out)
                found[:] = self.find(line, "python3", qpn)
            return sorted(qp["outstanding"] for qp in found) == numbers

        found = []
        self.assertTrue(wait_until(told, 20), found)
        return {qp["pid"]: qp["page_faults"] for qp in found}

    def test_what_ends_with_the_device(self):
        """Requests of a QP that is destroyed by another process than its own, which lives on. The
        next process whose QP has the number has requests and page faults of its own."""
        self.reload()  # from here on the card gives the same numbers
        with self.top(), self.connected(on_demand=True) as (agents, qpns):
            self.exchange(agents, qpns)
            agents[0].send(local=qpns[0], opcode="SEND", length=10, count=3)  # no receive
            before = self.await_waiting(qpns[0], [3])
            self.assertGreater(min(before.values()), 0)
            self.reload()
            self.assertEqual(self.await_waiting(qpns[0], [0]), before)
            with self.connected() as (successors, numbers):
                self.assertEqual(numbers[0], qpns[0])
                successors[0].send(local=qpns[0], opcode="SEND", length=10, count=2)
                after = self.await_waiting(qpns[0], [0, 2])
                self.assertEqual(sum(after.values()), sum(before.values()))
                successors[0].destroy(local=qpns[0])
                self.await_waiting(qpns[0], [0, 0])

    def test_unsignalled_requests_that_are_flushed(self):
        with self.top(), self.connected() as (agents, qpns):
            agent, qpn = agents[0], qpns[0]
            agent.send(local=qpn, opcode="SEND", length=10, count=3, signalled=False)
            self.await_outstanding(qpn, 3)
            agent.error(local=qpn)
            self.assertEqual(len(agent.poll(local=qpn, kind="send", count=3)), 3)
            self.await_outstanding(qpn, 0)

    def test_cq_depth(self):
        """Completions that nobody has polled."""
        with self.top(), self.connected() as (agents, qpns):
            self.exchange(agents, qpns)
            agents[0].send(local=qpns[0], opcode="WRITE", length=100, count=3,
                           rkey=agents[1].rkey, address=agents[1].address)

            def told():
                return '"send_cq":{"depth":3,' in self.host.run(f"tail -n 1 {TOP}").out

            self.assertTrue(wait_until(told, 20))
            agents[0].completions(local=qpns[0], kind="send", count=3)

    def test_page_faults(self):
        with self.top() as lines, self.connected(on_demand=True) as (agents, qpns):
            self.exchange(agents, qpns)
        self.assertGreater(self.last(lines, "python3", qpns[0])["page_faults"], 0)

    def test_text(self):
        """What people see, of one process; another one is left alone."""
        with (self.connected() as (agents, qpns),
              contextlib.closing(Agent(self.host, self.devices[self.host.name]))):
            pid, other = self.host.run("pgrep -f verbs_agent").out.split()
            device = self.devices[self.host.name]
            task = self.host.spawn(f"exec terntop --pid {pid} --interval 0.5 >/tmp/top.text")
            try:
                self.await_probe(pid, "post", lambda at: at == ("cc", 1))
                self.await_probe(other, "post", lambda at: at == RESTS)
                self.exchange(agents, qpns)
                shown = (rf"(?m)^{device}: roce_retrans_pkts 0/s, (.*\n)+"
                         rf" +{pid} python3 +{device} +{qpns[0]:#x} send +\d+ ")
                self.assertTrue(wait_until(
                    lambda: re.search(shown, self.host.run("cat /tmp/top.text").out), 20))
            finally:
                task.kill("INT")
                task.wait()

    def test_prometheus(self):
        count = 1000
        task = self.peer.spawn(f"exec terntop --listen {PORT}")
        fetch = ("python3 -c 'import urllib.request as u; print(u.urlopen("
                 f"\"http://127.0.0.1:{PORT}/metrics\").read().decode())'")
        try:
            self.assertTrue(wait_until(
                lambda: self.peer.run(fetch, check=False).code == 0 or task.failed(), 30))
            self.perftest("ib_write_bw", f"-s 512 -n {count}")
            page = self.peer.run(fetch).out
        finally:
            task.kill("INT")
            task.wait()
        labels = (rf'\{{pid="\d+",program="ib_write_bw",device="{self.devices[self.peer.name]}",'
                  r'qp="0x\w+"')
        for name, more, value in (("messages_total", ',operation="write"', count),
                                  ("bytes_total", ',operation="write"', 512 * count),
                                  ("errors_total", "", 0), ("outstanding", "", 0)):
            self.assertRegex(page, rf"(?m)^tern_qp_{name}{labels}{more}\}} {value}$")
        told = re.search(rf'(?m)^tern_qp_latency_seconds_bucket{labels},le="\+Inf"\}} (\d+)$', page)
        self.assertGreater(int(told[1]), 0)
        self.assertRegex(page, r'(?m)^tern_device_events_total\{.*"rcvd_rnr_err"\} \d+$')

    def test_prometheus_of_a_process(self):
        """terntop ends with the process."""
        watched = self.watch(self.peer)
        pid = self.peer.run("pgrep -x ibv_asyncwatch").out.strip()
        task = self.peer.spawn(f"terntop --listen {PORT} --pid {pid} && echo ended")
        self.assertTrue(wait_until(lambda: self.peer.run(
            f"exec 3<>/dev/tcp/127.0.0.1/{PORT}", check=False).code == 0 or task.failed(), 30))
        watched.kill("KILL")
        self.assertTrue(wait_until(lambda: "ended" in task.output(), 30), task.output())

    # --- terntrace

    def test_pingpong(self):
        """The life of an RC QP, in order."""
        with self.trace("") as said:
            self.pingpong("-n 20")
        lines = [line for line in said[0].splitlines() if " ibv_rc_pingpong " in line]
        text = "\n".join(lines)
        (qpn,) = set(re.findall(r"QP (0x\w+) +post SEND", text))
        steps = ["command CREATE_QP", f"done: CREATE_QP {qpn}",
                 rf"QP {qpn} +modified, state INIT", rf"QP {qpn} +post receives up to",
                 rf"QP {qpn} +modified, state RTR", rf"QP {qpn} +modified, state RTS"]
        for index in range(20):
            steps += [rf"QP {qpn} +post SEND, 4096 bytes, WQE {index}$",
                      rf"QP {qpn} +published up to WQE {index + 1}, (doorbell|no doorbell)",
                      rf"QP {qpn} +completion SEND, WQE {index}, .*: SUCCESS$"]
        steps += ["command DESTROY_QP", "answer to DESTROY_QP", f"done: DESTROY_QP {qpn}"]
        at = 0
        for step in steps:
            found = [number for number in range(at, len(lines)) if re.search(step, lines[number])]
            self.assertTrue(found, f"{step} is not after line {at} of\n{text}")
            at = found[0]
        self.assertEqual(len(re.findall(f"QP {qpn} +completion RECV, WQE", text)), 20)
        times = [float(line.split()[0]) for line in said[0].splitlines()]
        self.assertEqual(times, sorted(times))

    def test_one_qp(self):
        """As JSON: nothing of another QP; each request has a beginning and an end."""
        with self.connected() as (agents, qpns):
            other = agents[0].create(service="RC")
            with self.trace(f"--qp {qpns[0]} --json /tmp/trace.json"):
                self.exchange(agents, qpns)
            trace = json.loads(self.host.run("cat /tmp/trace.json").out)
            agents[0].destroy(local=other)
        events = trace["traceEvents"]
        self.assertEqual(trace["otherData"]["lost_events"], 0)
        self.assertLessEqual({event["tid"] for event in events}, {0, qpns[0]})
        slices = {phase: [(event["id"], event["name"]) for event in events if event["ph"] == phase]
                  for phase in "be"}
        self.assertEqual(slices["b"], slices["e"])
        self.assertEqual([name for _, name in slices["b"]],
                         ["SEND"] * 5 + ["WRITE"] * 5 + ["READ", "FETCH_ADD"])
        names = {event["args"]["name"] for event in events if event["ph"] == "M"}
        device = self.devices[self.host.name]
        self.assertLessEqual({"python3", f"{device} QP {qpns[0]:#x}"}, names)

    def test_faults_and_events(self):
        """A page fault between a post and its completion."""
        with self.connected(on_demand=True) as (agents, qpns):
            with self.trace(f"--qp {qpns[0]}") as said:
                self.exchange(agents, qpns)
        self.assertRegex(said[0], rf"(?s)QP {qpns[0]:#x} +post SEND.*QP {qpns[0]:#x} +page fault "
                                  r"at 0x\w+, \d+ bytes, for \w+: pages found.*completion SEND")

    def test_lost_events(self):
        """Of a terntrace that gets no time."""
        with self.trace("--json /tmp/trace.json", host=self.peer) as said:
            self.peer.run("pkill -STOP -x terntrace")
            self.perftest("ib_write_bw", "-s 8 -n 20000")
            self.peer.run("pkill -CONT -x terntrace")
        self.assertRegex(said[1], r"(?m)^terntrace: [1-9]\d* events were lost$")
        lost = json.loads(self.peer.run("cat /tmp/trace.json").out)["otherData"]["lost_events"]
        self.assertIn(f" {lost} events", said[1])

    # --- what they refuse, and what they leave

    def test_bad_input(self):
        no_btf = "unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec"
        for tool in ("terntop --count 1", "terntrace --duration 1"):
            for command, expression, *code in (
                    (f"{no_btf} {tool}'", r"this kernel has no BTF .*"),
                    (f"setpriv --reuid 65534 --clear-groups {tool}", "only root may .*"),
                    (f"{tool} --pid 2000000", "there is no process 2000000"),
                    (f"{tool} --pid 1", "process 1 has not loaded Tern's provider"),
                    (f"{tool} --library /no", "no provider: /no: No such file .*"),
                    (f"{tool} --library /bin/ls", ".* has no probe tern:.*"),
                    (f"{tool} --bogus", "wrong option --bogus.*", 2),
                    (f"{tool} --pid x", '--pid takes a number .*"x"', 2)):
                with self.subTest(command):
                    self.assert_refused(command, expression, *code)
        self.assert_refused("terntrace --qp 0xfffff0", "no device here has a QP 16777200")
        self.assert_refused("terntrace --qp 0", '--qp takes a number .*"0"', 2)
        self.assert_refused("terntrace --json /no/file", "cannot write /no/file")
        self.assert_refused("terntop --listen 1.2.3:80", "--listen takes .*", 2)
        # Before it looks at who asks, and at the system.
        self.assert_refused("setpriv --reuid 65534 --clear-groups terntop --listen foo:9000",
                            '--listen takes .*"foo:9000"', 2)
        self.assert_refused("terntop --listen 80 --count 1", "--listen goes without .*", 2)
        self.assert_refused("terntop --interval 0", "--interval takes seconds .*", 2)

    def test_without_driver(self):
        self.host.run(f"ip link set {NETDEV} down")
        self.unload(self.host)
        try:
            self.assert_refused("terntop --count 1", "the driver tern is not loaded.*")
        finally:
            self.host.run("modprobe tern")
            self.host.configure()

    def test_silent_card(self):
        """It cannot read the driver's commands, and nobody starts it again."""
        pci = self.host.pci()
        reporter = f"pci/{pci} reporter fw_fatal"
        self.host.run(f"devlink health set {reporter} auto_recover false && "
                      f"setpci -s {pci} COMMAND=0:4")
        try:
            for tool in ("terntop --count 1", "terntrace --duration 1"):
                self.assert_refused(tool, f"the card of {self.devices[self.host.name]} does not "
                                    "answer its driver; .*")
        finally:
            self.host.run(f"devlink health recover {reporter} && "
                          f"devlink health set {reporter} auto_recover true")
            self.host.gid_index(self.devices[self.host.name])

    def await_probe(self, pid, name, holds):
        """Until holds((code, semaphore)) for the probe in the memory of the process."""
        notes = subprocess.run(["readelf", "-n", PROVIDER], check=True, capture_output=True,
                               text=True).stdout
        (where,) = [found for found in PROBE.findall(notes) if found[0] == name]
        self.host.write_file("/tmp/look.py", LOOK.encode())
        at = []

        def look():
            code, semaphore = self.host.run(
                f"python3 /tmp/look.py {pid} {where[1]} {where[2]}").out.split()
            at[:] = [(code, int(semaphore))]
            return holds(at[0])

        self.assertTrue(wait_until(look, 30), at)

    def test_killed(self):
        """The program goes on, and its code is what it was."""
        with self.connected() as (agents, qpns):
            pid = self.host.run("pgrep -f verbs_agent").out.split()[0]
            for tool in ("terntop", "terntrace"):
                self.await_probe(pid, "post", lambda at: at == RESTS)
                task = self.host.spawn(f"exec {tool} >/dev/null 2>&1")
                for probe in ("post", "complete"):
                    self.await_probe(pid, probe, lambda at: at == ("cc", 1))
                self.exchange(agents, qpns)
                task.kill("KILL")
                task.wait(check=False)
                for probe in ("post", "doorbell", "post_recv", "complete"):
                    self.await_probe(pid, probe, lambda at: at == RESTS)
                self.exchange(agents, qpns)


if __name__ == "__main__":
    main()
