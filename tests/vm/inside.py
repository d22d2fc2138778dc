# SPDX-License-Identifier: GPL-2.0-or-later
"""What stock tools show of the driver's and the card's state, and whether it names the reason of
what does not go on: rdma resource, tracepoints, debugfs, devlink health, and scripts/lab why."""

from concurrent import futures
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from agent import BUFFER, Agent
from programs import Programs
from scenario import NETDEV, Options, main, wait_until
from ternlab import inject, pace, query
from ternlab.paths import SCRIPTS
from ternlab.why import Why

TRACING = "/sys/kernel/debug/tracing"
ANSWER = 60  # seconds of the reference machine
FOREVER = 7  # of rnr_retry
CALM = 10  # TERN_RESTART_CALM in seconds: one that has worked for longer restarts at once
RTS, ERR = 3, 6  # of enum tern_hw_qp_state


class Inside(Programs):
    # To enable a trace event patches the kernel's code, which QEMU 7.2 may not notice in time on
    # another processor ("int3").
    HOSTS = (Options(smp=1), Options(smp=1))

    def setUp(self):
        super().setUp()
        self.host, self.peer = self.hosts[:2]
        self.pci = self.host.pci()

    # --- what the cards say

    def ask(self, command, *arguments):
        """(exit code, what it says) of scripts/lab."""
        done = subprocess.run([SCRIPTS / "lab", "--lab", self.lab.name, command, *arguments],
                              capture_output=True, text=True, check=False,
                              timeout=pace.scaled(ANSWER))
        return done.returncode, done.stdout + done.stderr

    @staticmethod
    def monitor(host, command):
        """For one command: a monitor has one client at a time, and scripts/lab is one."""
        with host.qmp() as monitor:
            monitor.execute(command)

    def reasons(self, qpn):
        """Those of the host's card or of a QP of it, in sentences, as `why` tells them."""
        told = Why(query.cards_of(self.lab))
        name = self.host.name
        return [str(reason) for reason in (
            told.of_host(name) if qpn is None else [told.of_qp(name, qpn)])]

    def await_reason(self, qpn, expression):
        """Waits for it: the card may be about to find out. It asks without a command of `lab`,
        whose start takes long on a busy machine: the driver gives up a card that answers none of
        its commands for 20 s."""
        said = []

        def named():
            said[:] = self.reasons(qpn)
            return len(said) == 1 and re.search(expression, said[0])
        self.assertTrue(wait_until(named, 20), said)

    def assert_reason(self, qpn, expression):
        """As await_reason(), and by the command `lab why`."""
        self.await_reason(qpn, expression)
        words = ["why", self.host.name, *([] if qpn is None else ["--qp", str(qpn)])]
        said = []

        def named():
            said[:] = self.ask(*words)
            return said[0] == 0 and re.search(expression, said[1])
        self.assertTrue(wait_until(named, 20), said)
        self.assertEqual(said[1].count("\n"), 1, said)
        _, told = self.ask(*words, "--json")
        self.assertEqual([reason["card"] for reason in json.loads(told)], [self.host.name], told)

    @contextlib.contextmanager
    def interrupts_masked(self):
        """By the bit of the card's MSI-X capability, which the driver does not look at."""
        mask = f"setpci -s {self.pci} CAP_MSIX+2.w="
        self.host.run(f"{mask}4000:4000")
        try:
            yield
        finally:
            self.host.run(f"{mask}0:4000")

    def test_credits(self):
        """A receive for one of three messages: the peer counts what it has."""
        with self.connected(rnr_retry=FOREVER) as (agents, qpns):
            agents[1].receive(local=qpns[1], offset=0, length=100)
            agents[0].send(local=qpns[0], opcode="SEND", length=100, count=3)
            self.assert_reason(qpns[0], "waits for credits: message [23] is posted, the peer has "
                               f"receives up to message 1; host2 QP {qpns[1]:#x} has no receive")
            agents[1].receive(local=qpns[1], offset=0, length=100, count=2)
            agents[0].completions(local=qpns[0], kind="send", count=3)
            self.assert_reason(qpns[0], "has nothing to send")

    def test_page_fault(self):
        """Its event does not reach the driver."""
        with self.connected(on_demand=True) as (agents, qpns):
            agents[1].receive(local=qpns[1], offset=0, length=100)
            with self.interrupts_masked():
                agents[0].send(local=qpns[0], opcode="SEND", length=100)
                self.assert_reason(
                    qpns[0], r"sends from pages of key 0x\w+ at 0x\w+: the driver has not answered "
                    "the page fault, as MSI-X is masked")
                self.assert_reason(None, "host1: MSI-X is masked: the driver gets no interrupts")
            agents[0].completions(local=qpns[0], kind="send")

    def test_unanswered_command(self):
        """The QP's own. Its program waits in the kernel."""
        with self.connected() as (agents, qpns), futures.ThreadPoolExecutor() as pool:
            self.assertEqual(self.ask("inject", self.host.name, "hold"), (0, ""))
            try:
                moved = pool.submit(agents[0].error, local=qpns[0])
                self.await_reason(qpns[0], "the card has not answered its MODIFY_QP")
                self.await_reason(None, "host1: admin commands not answered: [1-9], MODIFY_QP "
                                        "under way")
            finally:
                inject.hold_commands(self.host, 0, False)
            moved.result()
            self.assertEqual(agents[0].state(local=qpns[0]), "ERR")
            self.assert_reason(qpns[0], "in error: its host has moved it there")
            self.assertEqual(self.ask("inject", self.host.name, "release"), (0, ""))

    def test_query(self):
        with self.connected() as (_, qpns):
            code, said = self.ask("query", self.host.name, "--qp", hex(qpns[0]), "--json")
            self.assertEqual(code, 0, said)
            (qp,) = json.loads(said)["engines"][0]["qps"]
            self.assertEqual((qp["number"], qp["dest_qpn"]), tuple(qpns))
            self.assertEqual((qp["requester"]["una"], qp["responder"]["expected_psn"]), (5, 5))
            code, said = self.ask("query", self.host.name)
            self.assertEqual(code, 0, said)
            self.assertRegex(said, rf"(?m)^{qpns[0]:#x} +RC +RTS +{qpns[1]:#x} ")
        for wrong, message in (((self.host.name, "--qp", "0xfffff0"), "has no QP 0xfffff0"),
                               (("host9",), 'no host "host9"')):
            for command in ("query", "why"):
                code, said = self.ask(command, *wrong)
                self.assertEqual(code, 1, said)
                self.assertRegex(said, rf"^lab: .*{message}.*\n$")

    # --- rdma resource

    def details(self, agent, kind):
        """The objects of the agent's process."""
        entries = json.loads(agent.host.run(f"rdma -j -dd resource show {kind}").out)
        return [entry for entry in entries if entry.get("comm") == "python3"]

    def test_resource_details(self):
        """A SEND that waits for a receive: posted and seen here, nothing posted there."""
        with self.connected(rnr_retry=FOREVER) as (agents, qpns):
            agents[0].send(local=qpns[0], opcode="SEND", length=100)
            (sender,), (receiver,) = (self.details(agent, "qp") for agent in agents)
            self.assertEqual((sender["lqpn"], sender["state"]), (qpns[0], "RTS"))
            self.assertEqual((sender["drv_sq_pi"], receiver["drv_rq_pi"]), (1, 0))
            self.assertGreaterEqual(sender["drv_sq_size"], 1)
            self.assertEqual(sender["drv_req_page_fault"], 0)

            agents[1].receive(local=qpns[1], offset=0, length=100)
            waiting = [0]
            self.assertTrue(wait_until(lambda: 1 in self.waiting(agents[0], waiting), 20), waiting)
            self.assertEqual(self.details(agents[1], "qp")[0]["drv_rq_pi"], 1)
            (region,) = self.details(agents[0], "mr")
            self.assertGreaterEqual(region["drv_page_shift"], 12)
            self.assertIn((RTS, qpns[1]), self.raw_qps())
            agents[0].completions(local=qpns[0], kind="send")

    def test_resource_of_device_memory(self):
        agent = Agent(self.host, self.devices[self.host.name])
        try:
            agent.register_device_memory(length=8192)
            lengths = [region["mrlen"] for region in self.details(agent, "mr")]
            self.assertEqual(sorted(lengths), [8192, BUFFER])
        finally:
            agent.close()

    def test_resource_details_of_an_srq(self):
        """Linux asks the driver since 6.7."""
        version = tuple(map(int, self.host.run("uname -r").out.split(".")[:2]))
        task = self.host.spawn("exec ibv_srq_pingpong -q 2 -r 400 >/dev/null "
                               f"{self.verbs(self.host, option='-g')}")
        found = []

        def listed():
            entries = json.loads(self.host.run("rdma -j -dd resource show srq").out)
            found[:] = [entry for entry in entries if "srqn" in entry]
            return found or task.failed()

        try:
            self.assertTrue(wait_until(listed, 20))
        finally:
            task.kill("INT")
            task.wait(check=False)
        (srq,) = found
        details = {name: value for name, value in srq.items() if name.startswith("drv_")}
        self.assertEqual(details, {"drv_srq_size": 512, "drv_max_sge": 1, "drv_limit": 0}
                         if version >= (6, 7) else {})

    def raw_qps(self):
        """State and destination of each QP, as the card answers."""
        entries = json.loads(self.host.run("rdma -j -r resource show qp").out)
        blobs = [bytes(byte & 0xff for byte in entry["data"])
                 for entry in entries if "data" in entry]
        return [(blob[0], int.from_bytes(blob[20:24], "little")) for blob in blobs]

    def test_resource_of_an_rss_qp(self):
        """It has no states that could be shown. The other QPs are, as if it were not there."""
        device = self.devices[self.host.name]
        before = self.host.run("rdma -j resource show qp").out
        agent = Agent(self.host, device)
        try:
            qpn = agent.create_rss()
            for details in ("-dd", "-r"):
                self.host.run(f"rdma {details} resource show qp")
            self.assertEqual(self.host.run("rdma -j resource show qp").out, before)
            bound = self.host.run(f"rdma statistic qp bind link {device}/1 lqpn {qpn}", check=False)
            self.assertNotEqual(bound.code, 0)
        finally:
            agent.close()

    def waiting(self, agent, found):
        """Sets the completions in each CQ that nobody has consumed."""
        found[:] = [cq["drv_pi"] - cq["drv_ci"] for cq in self.details(agent, "cq")]
        return found

    # --- rdma statistic qp

    def qp_counters(self, host):
        said = host.run(f"rdma -j statistic qp show link {self.devices[host.name]}/1").out
        return json.loads(said)

    def assert_port_counts_all(self):
        """What the port counts is what the card counts, with QPs that are counted apart."""
        def counts():
            said = self.host.run(f"ethtool -S {NETDEV}").out
            card = int(re.search(r"roce_tx_packets: (\d+)", said)[1])
            return self.host.hw_counter("sent_pkts"), card

        # An acknowledgement may be sent between the two readings.
        self.assertTrue(wait_until(lambda: len(set(counts())) == 1, 20), counts())

    def exchange(self, agents, qpns, count):
        agents[1].receive(local=qpns[1], offset=0, length=100, count=count)
        agents[0].send(local=qpns[0], opcode="SEND", length=100, count=count)
        agents[0].completions(local=qpns[0], kind="send", count=count)

    def port_counter(self, name):
        path = f"/sys/class/infiniband/{self.devices[self.host.name]}/ports/1/counters/{name}"
        return int(self.host.run(f"cat {path}").out)

    def test_counters_of_the_port(self):
        """Those of performance management, which monitors read of any RDMA device."""
        def counts():
            return (self.port_counter("port_xmit_packets"), self.host.hw_counter("sent_pkts"),
                    self.port_counter("port_xmit_data"), self.host.hw_counter("sent_bytes") // 4,
                    self.port_counter("port_rcv_packets"), self.host.hw_counter("rcvd_pkts"),
                    self.port_counter("port_rcv_data"), self.host.hw_counter("rcvd_bytes") // 4)

        def agree():
            found = counts()
            return found[::2] == found[1::2]
        before = self.port_counter("port_xmit_packets")
        with self.connected(timeout=20) as (agents, qpns):
            self.exchange(agents, qpns, 10)
            # An acknowledgement may arrive between the readings.
            self.assertTrue(wait_until(agree, 20), counts())
        self.assertGreaterEqual(self.port_counter("port_xmit_packets"), before + 10)
        for name in ("symbol_error", "port_rcv_errors", "port_xmit_discards"):
            self.assertEqual(self.port_counter(name), 0, name)

    def test_counters_of_one_qp(self):
        link = f"{self.devices[self.host.name]}/1"
        with self.connected(timeout=20) as (agents, qpns):
            self.exchange(agents, qpns, 2)
            self.host.run(f"rdma statistic qp bind link {link} lqpn {qpns[0]}")
            self.exchange(agents, qpns, 3)
            (found,) = self.qp_counters(self.host)
            self.assertEqual((found["lqpn"], found["sent_pkts"]), ([qpns[0]], 3))
            self.assertGreaterEqual(found["rcvd_pkts"], 1)
            self.assert_port_counts_all()
            self.host.run(
                f"rdma statistic qp unbind link {link} cntn {found['cntn']} lqpn {qpns[0]}")
            self.assertEqual(self.qp_counters(self.host), [])
            self.assert_port_counts_all()
            wrong = self.host.run(f"rdma statistic qp bind link {link} lqpn {qpns[0] + 77}",
                                  check=False)
            self.assertNotEqual(wrong.code, 0)

    def test_counters_by_process(self):
        """In the automatic mode the QPs of a process and type have counters of their own."""
        link = f"{self.devices[self.host.name]}/1"
        self.host.run(f"rdma statistic qp set link {link} auto type,pid on")
        try:
            with self.connected(timeout=20) as one, self.connected(timeout=20) as other:
                self.exchange(*one, 3)
                self.exchange(*other, 5)
                sent = {tuple(entry["lqpn"]): entry["sent_pkts"]
                        for entry in self.qp_counters(self.host)}
                self.assertEqual(sent[one[1][0],], 3)
                self.assertEqual(sent[other[1][0],], 5)
                self.assert_port_counts_all()
        finally:
            self.host.run(f"rdma statistic qp set link {link} auto off")
        self.assertEqual(self.qp_counters(self.host), [])
        self.assert_port_counts_all()

    def test_counters_of_a_qp_that_goes(self):
        """They can be read while the card has not answered the last of the commands that free
        them. Those before it unbind the QP and add what it has counted to the port's counters."""
        link = f"{self.devices[self.host.name]}/1"
        self.host.run(f"rdma statistic qp set link {link} auto type,pid on")
        try:
            with self.connected(timeout=20) as (agents, qpns), futures.ThreadPoolExecutor() as pool:
                inject.hold_commands(self.host, 0, True, answers=2)
                try:
                    gone = pool.submit(agents[0].destroy, local=qpns[0])
                    self.await_reason(None, "host1: admin commands not answered: 1, DESTROY_STATS "
                                            "under way")
                    self.qp_counters(self.host)
                finally:
                    inject.hold_commands(self.host, 0, False)
                gone.result()
        finally:
            self.host.run(f"rdma statistic qp set link {link} auto off")
        self.assertEqual(self.qp_counters(self.host), [])
        self.assert_port_counts_all()

    def await_growth(self, host, name, before):
        grown = wait_until(lambda: host.hw_counter(name) > before, 20)
        self.assertTrue(grown, f"{name} of {host.name} stays {before}")

    def test_receiver_not_ready(self):
        """For ever: the counter says so, and the peer has posted no receive."""
        with self.connected(rnr_retry=FOREVER) as (agents, qpns):
            before = self.host.hw_counter("rcvd_rnr_err")
            agents[0].send(local=qpns[0], opcode="SEND", length=100)
            self.await_growth(self.host, "rcvd_rnr_err", before)
            self.assertEqual(self.details(agents[0], "qp")[0]["state"], "RTS")
            self.assertEqual(self.details(agents[1], "qp")[0]["drv_rq_pi"], 0)
            self.assert_reason(qpns[0], "answered by RNR NAKs .*; "
                               f"host2 QP {qpns[1]:#x} has no receive posted")

    def test_peer_gone(self):
        """Timeouts here, and packets without a QP there. The retries last for long."""
        with self.connected(timeout=20) as (agents, qpns):
            agents[1].destroy(local=qpns[1])
            timeouts = self.host.hw_counter("local_ack_timeout_err")
            lost = self.peer.hw_counter("rx_no_qp")
            agents[0].send(local=qpns[0], opcode="WRITE", length=100, rkey=agents[1].rkey,
                           address=agents[1].address)
            self.await_growth(self.host, "local_ack_timeout_err", timeouts)
            self.await_growth(self.peer, "rx_no_qp", lost)
            self.assertEqual(self.details(agents[0], "qp")[0]["drv_sq_pi"], 1)
            self.assert_reason(qpns[0], "waits for an acknowledgement of PSN 5, retry [1-7] of 7: "
                               f"host2 has no QP {qpns[1]:#x}")

    def test_paused_machine(self):
        """A virtual machine that is paused still tells of its card, to its peer's reasons, too."""
        with self.connected(timeout=20) as (agents, qpns):
            self.monitor(self.peer, "stop")
            try:
                agents[0].send(local=qpns[0], opcode="WRITE", length=100, rkey=agents[1].rkey,
                               address=agents[1].address)
                self.assert_reason(qpns[0], "waits for an acknowledgement of PSN 5.*: "
                                   "host2: the virtual machine is paused")
                code, said = self.ask("query", self.peer.name)
                self.assertEqual(code, 0, said)
                self.assertRegex(said, rf"(?m)^{qpns[1]:#x} +RC +RTS +{qpns[0]:#x} ")
            finally:
                self.monitor(self.peer, "cont")
            agents[0].completions(local=qpns[0], kind="send")

    @contextlib.contextmanager
    def without_time(self, host):
        """Its QEMU does nothing at all."""
        os.kill(host.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(host.process.pid, signal.SIGCONT)

    def test_silent_machine(self):
        """One line about a QEMU that does not answer, in bounded time. Other cards are told of."""
        silent = (f"{self.peer.name}: its QEMU does not answer: "
                  "(timed out|others wait for it, too)\n$")
        with self.connected(timeout=20) as (agents, qpns):
            with self.without_time(self.peer), futures.ThreadPoolExecutor() as executor:
                agents[0].send(local=qpns[0], opcode="WRITE", length=100, rkey=agents[1].rkey,
                               address=agents[1].address)
                asked = [executor.submit(self.ask, *words) for words in (
                    ("query", self.peer.name), ("why", self.peer.name),
                    ("why", self.host.name, "--qp", str(qpns[0])))]
                answers = [one.result() for one in asked]
            agents[0].completions(local=qpns[0], kind="send")
        for (code, said), wanted, begin in zip(answers, (1, 1, 0), (
                "lab: ", "lab: ", "host1 .*waits for an acknowledgement of PSN 5, .*: ")):
            self.assertEqual(code, wanted, said)
            self.assertRegex(said, f"^{begin}{silent}")

    # --- tracepoints

    @contextlib.contextmanager
    def traced(self):
        """A list that has the lines of the block in the end."""
        lines = []
        self.host.run(f"cd {TRACING} && echo >trace && echo 1 >events/tern/enable")
        try:
            yield lines
        finally:
            self.host.run(f"echo 0 >{TRACING}/events/tern/enable")
            lines += self.host.run(f"grep -v '^#' {TRACING}/trace").out.splitlines()

    def assert_traced(self, lines, *expressions):
        text = "\n".join(lines)
        for expression in expressions:
            self.assertTrue(re.search(expression, text), f"no {expression} in {lines[-20:]}")

    def test_trace_of_objects(self):
        with self.traced() as lines, self.connected() as (agents, qpns):
            agents[1].receive(local=qpns[1], offset=0, length=100)
            agents[0].send(local=qpns[0], opcode="SEND", length=100)
            agents[0].completions(local=qpns[0], kind="send")
        number = f"0x{qpns[0]:x}"
        self.assert_traced(
            lines, rf"tern_cmd_submit: {self.pci} engine \d+ id \d+ CREATE_QP",
            rf"tern_cmd_complete: {self.pci} .* CREATE_QP status OK err 0 in \d+ us",
            rf"python3-\d+ .*tern_create: {self.pci} CREATE_QP {number}",
            rf"tern_modify_qp: {self.pci} qpn {number} state RTS .*sq_psn 0x5 .*err 0",
            rf"tern_destroy: {self.pci} DESTROY_QP {number}",
            rf"tern_create: {self.pci} CREATE_MR 0x\w+",
            rf"tern_create: {self.pci} CREATE_CQ 0x\w+")

    def test_refused_field(self):
        """The card names the field of a command that it refuses: here the value of SET_CONGESTION,
        four bytes behind the beginning of the body at byte 8."""
        params = f"/sys/kernel/debug/tern/{self.pci}/cc_params"
        with self.traced() as lines:
            refused = self.host.run(f"echo 4000000000 >{params}/rp_gd", check=False)
        self.assertTrue(refused.code, "a value out of range is taken")
        self.assert_traced(
            lines, rf"tern_cmd_complete: {self.pci} .* SET_CONGESTION status BAD_FIELD err -22 .*"
            "refused byte 12")

    def test_trace_of_pages(self):
        """A program with memory on demand: the card faults."""
        with self.traced() as lines:
            self.pingpong("-o -n 20")
        self.assert_traced(
            lines, rf"tern_event: {self.pci} eqn 0x\w+ PAGE_FAULT 0x\w+",
            rf"tern_page_fault: {self.pci} qpn 0x\w+ key 0x\w+ addr 0x\w+ length \d+ \w+ resume 1",
            rf"tern_event: {self.pci} eqn 0x\w+ COMP 0x\w+")

    # --- debugfs

    def dump_of(self, name, host=None):
        """The rows of a file of debugfs, by heading."""
        host = host or self.host
        path = f"/sys/kernel/debug/tern/{host.pci()}/{name}"
        heading, *lines = host.run(f"cat {path}").out.splitlines()
        return [dict(zip(heading.split(), line.split())) for line in lines]

    def test_debugfs(self):
        with self.connected(rnr_retry=FOREVER) as (agents, qpns):
            agents[0].send(local=qpns[0], opcode="SEND", length=100, count=3)
            rows = [{int(row["qpn"], 16): row for row in self.dump_of("QPs", agent.host)}[qpn]
                    for agent, qpn in zip(agents, qpns)]
            self.assertEqual([row["state"] for row in rows], ["RTS", "RTS"])
            self.assertEqual(int(rows[0]["dest_qpn"], 16), qpns[1])
            self.assertEqual((int(rows[0]["sq_pi"], 16), int(rows[1]["rq_pi"], 16)), (3, 0))
            # What the peer expects is what it has not been able to take.
            self.assertEqual(int(rows[1]["rq_psn"], 16), 5)
            agents[1].receive(local=qpns[1], offset=0, length=100, count=3)
            self.assertTrue(wait_until(lambda: any(
                int(row["pi"], 16) - int(row["ci"], 16) == 3 for row in self.dump_of("CQs")), 20))
        events = self.dump_of("EQs")
        self.assertGreaterEqual(len(events), 2)
        self.assertGreater(sum(int(row["ci"], 16) for row in events), 0)
        self.assertEqual(self.dump_of("commands"), [])

    def test_debugfs_of_many_qps(self):
        """Each read asks the card at most once more than for the lines that it returns."""
        agent = Agent(self.host, self.devices[self.host.name])
        try:
            qpns = {agent.create(service="UD") for _ in range(200)}
            with self.traced() as lines:
                rows = self.dump_of("QPs")
        finally:
            agent.close()
        shown = [int(row["qpn"], 16) for row in rows]
        self.assertEqual(len(shown), len(set(shown)))
        self.assertLessEqual(qpns, set(shown))
        asked = sum(bool(re.search("tern_cmd_submit: .* QUERY_QP", line)) for line in lines)
        self.assertGreaterEqual(asked, len(shown))
        self.assertLess(asked, 1.2 * len(shown))

    # --- devlink

    def health(self, reporter):
        said = self.host.run(f"devlink -j health show pci/{self.pci} reporter {reporter}").out
        return json.loads(said)["health"][f"pci/{self.pci}"][0]

    def queue(self):
        said = self.host.run(f"devlink -j health diagnose pci/{self.pci} reporter tx").out
        return json.loads(said)["queues"][0]

    def pause_of_next_restart(self):
        """Puts the queue in error. Returns how many ms it would wait before another restart."""
        before = self.queue()["restarts"]
        self.host.run(f"devlink health test pci/{self.pci} reporter tx")
        self.assertTrue(wait_until(lambda: self.queue()["restarts"] == before + 1, 20),
                        self.queue())
        return self.queue()["backoff_ms"]

    def test_queue_in_error(self):
        """It restarts by itself: at once, then later and later. Others go on meanwhile."""
        before, failures = self.queue()["restarts"], self.health("tx")["error"]
        with self.traced() as lines:
            for _ in range(self.CHANCES):
                begun = time.monotonic()
                pauses = [self.pause_of_next_restart() for _ in range(3)]
                if time.monotonic() - begun < CALM:
                    break
        restarts = self.queue()["restarts"] - before
        self.assertEqual([pause // pauses[0] for pause in pauses], [1, 2, 4])
        self.assert_traced(lines, rf"tern_rx_error: {NETDEV} queue 0 wqe 0x\w+ WR_FLUSH_ERR",
                           rf"tern_queue_restart: {NETDEV} queue 0 err 0 next after \d+ ms")
        self.ping(self.host, self.peer.ipv4)
        self.ping(self.peer, self.host.ipv4)
        health = self.health("tx")
        self.assertEqual((health["state"], health["error"]), ("healthy", failures + restarts))
        counters = self.host.run(f"ethtool -S {NETDEV}").out
        self.assertIn(f"ch0_recover: {self.queue()['restarts']}\n", counters)

    def test_fatal_card(self):
        """A card that may not read memory any more stops, and its dump says why. Nothing starts it
        again while somebody looks at it."""
        host, reporter = self.host, f"pci/{self.pci} reporter fw_fatal"
        self.assertEqual(self.health("fw_fatal")["state"], "healthy")
        # If the test fails half-way, the tests after it get a card that works.
        self.addCleanup(host.run, f"devlink health recover {reporter}; "
                                  f"devlink health set {reporter} auto_recover true")
        host.run(f"devlink health set {reporter} auto_recover false")
        with self.traced() as lines:
            host.run(f"setpci -s {self.pci} COMMAND=0:4; ethtool -S {NETDEV}", check=False)
            failed = wait_until(lambda: self.health("fw_fatal")["state"] == "error", 30)
        self.assertTrue(failed, self.health("fw_fatal"))
        self.assert_traced(lines, rf"tern_card_failed: {self.pci} the card has stopped",
                           rf"tern_cmd_complete: {self.pci} .* QUERY_STATS .*err -5")
        self.assert_reason(None, r"host1: the .*had stopped \(AQ_DMA\): it cannot read or write "
                           "the admin queue, as bus mastering is off")
        said = host.run(f"devlink -j health dump show {reporter}").out
        dump = json.loads(said)
        self.assertEqual(dump["card"], "has stopped")
        first = dump["engines"][0]
        self.assertEqual(first["reason"], "AQ_DMA")
        self.assertEqual([command["command"] for command in first["unanswered"]], ["QUERY_STATS"])
        host.run(f"devlink health recover {reporter} && "
                 f"devlink health set {reporter} auto_recover true")
        host.gid_index(self.devices[host.name])
        self.assertEqual(self.health("fw_fatal")["state"], "healthy")
        self.pingpong("-n 20")

    def test_resource_of_a_dead_card(self):
        """It answers no query, so the driver says of each QP that it is in ERR."""
        host, reporter = self.host, f"pci/{self.pci} reporter fw_fatal"
        host.run(f"devlink health set {reporter} auto_recover false")
        try:
            host.run(f"setpci -s {self.pci} COMMAND=0:4; ethtool -S {NETDEV}", check=False)
            self.assertTrue(wait_until(lambda: self.health("fw_fatal")["state"] == "error", 30))
            host.run("rdma -dd resource show qp")
            entries = json.loads(host.run("rdma -j resource show qp").out)
            self.assertEqual({entry["state"] for entry in entries}, {"ERR"}, entries)
            self.assertEqual(set(self.raw_qps()), {(ERR, 0)})
        finally:
            host.run(f"devlink health recover {reporter} && "
                     f"devlink health set {reporter} auto_recover true")
        host.gid_index(self.devices[host.name])
        self.pingpong("-n 20")


if __name__ == "__main__":
    main()
