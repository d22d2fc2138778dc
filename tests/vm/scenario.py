# SPDX-License-Identifier: GPL-2.0-or-later
"""What every scenario shares: a lab of its own, and guests whose kernels have no complaint.

A scenario is a file that runs by itself, too: /usr/bin/python3 tests/vm/network.py -v [-k NAME].
With TERN_TEST_DEVICE=rxe its hosts get virtio cards and Soft-RoCE instead of
Tern, which tells whether a failure is Tern's or the scenario's.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import sys
import threading
import time
import unittest

from kernel_log import leaks, trouble

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

# pylint: disable=wrong-import-position
import report  # noqa: E402
from ternlab import pair, stack  # noqa: E402
from ternlab.errors import CommandError, LabError  # noqa: E402
from ternlab.host import NETDEV, Options  # noqa: E402
from ternlab.lab import Lab  # noqa: E402
from ternlab.progress import wait_until  # noqa: E402

__all__ = ["CommandError", "LabError", "NETDEV", "Options", "PATIENT", "RXE", "Scenario", "main",
           "pair", "report", "wait_until"]

RXE = os.environ.get("TERN_TEST_DEVICE", "tern") == "rxe"
DEBUG_MEM = "2G"  # A debug kernel's checkers take half of a host's memory.
# Stock programs that have an ACK timeout of 14, and no option for it, get 18 by this.
PATIENT = "LD_PRELOAD=/opt/tern/bin/ack_timeout.so"
NEIGHBOUR_TIMEOUT = 30  # seconds until all peers must have answered
# Sends a datagram to the discard port of each peer until its Ethernet address is known. bash does
# it without a process for each of them, as to start one takes a tenth of a second under TCG.
MEET = """exec bash -c '
    while known=$(ip neigh show); do
        missing=
        for peer in {peers}; do
            [[ $known =~ (^|[[:space:]])$peer" dev "[^[:space:]]+" lladdr" ]] && continue
            missing+=" $peer"
            echo >/dev/udp/$peer/9
        done
        [[ $missing ]] || exit 0
        (( SECONDS < {seconds} )) || break
        sleep 0.1
    done
    echo "no Ethernet address of$missing"
    ip neigh show
    exit 1'"""

THREADS = "ps -eLo stat=,lwp=,comm=,wchan:40="

main = report.main


class Scenario(unittest.TestCase):
    """Tests in one lab. Each leaves it as it found it: up, with addresses, without faults."""

    HOSTS = (Options(), Options())
    TOPOLOGY = None  # a file, of which topology.hosts() has made HOSTS
    IMAGE = {}  # options of Image.get()
    TOLERATED = None  # pattern of trouble in a kernel's log that the tests cause
    # How often to measure again what a receiver that waited for a processor has spoilt: the wire
    # drops what such a receiver does not take for a second.
    CHANCES = 5
    VERBS_CHECK_PORT = 18600
    # The switch's commands for faults, and its counters of them.
    FAULTS = {"loss": "lost", "dup": "duplicated", "reorder": "reordered", "corrupt": "corrupted"}
    killed = ports_before = 0  # of kill_switch()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(f"{report.NAME}.{cls.__name__}")
        hosts = cls.HOSTS
        if RXE:
            hosts = [dataclasses.replace(options, nic="virtio") for options in hosts]
        if stack.has_debug_kernel():
            hosts = [dataclasses.replace(options, mem=DEBUG_MEM) for options in hosts]
        begun = time.monotonic()
        report.COST.logs.append(cls.lab.logs)
        # Which leaves nothing but its logs if it fails.
        cls.lab.up(hosts, owned=True, topology=cls.TOPOLOGY, **cls.IMAGE)
        cls.addClassCleanup(cls.take_down)
        report.COST.starting += time.monotonic() - begun
        cls.hosts = cls.lab.hosts
        for host in cls.hosts:
            if host.options.nic == "virtio":
                host.run(f"modprobe rdma_rxe && rdma link add rxe0 type rxe netdev {NETDEV}")
        cls.meet()
        cls.seen = {host.name: "" for host in cls.hosts}
        cls.switch = cls.lab.wire.pid()
        cls.ledger = ((cls.switch, 0), 0)

    @classmethod
    def meet(cls):
        """Each host learns the Ethernet addresses of the others' cards.

        Where one is unknown, the kernel waits a second when a QP goes to RTR, and two or three in
        RDMA CM. If the answer comes while rdma_resolve_ip() is about to queue its request, which a
        busy machine makes likely, nobody tells the request: it waits for its whole timeout. That
        of RTRS is as long as the connection may take.
        """
        def learn(host):
            peers = [address for peer in there if peer is not host
                     for card in range(min(host.options.cards, peer.options.cards))
                     for address in peer.addresses(card)]
            if peers:
                host.run(MEET.format(peers=" ".join(peers), seconds=NEIGHBOUR_TIMEOUT))

        there = [host for host in cls.hosts if host.options.load]  # others have no addresses yet
        cls.lab.each(learn, there)

    @classmethod
    def take_down(cls):
        report.COST.ending(cls.lab)
        cls.lab.down()

    def setUp(self):
        # These run after the test's own cleanups, whether it passed or not.
        name = self.id().partition(".")[2]
        self.addCleanup(report.COST.tested, name, self.lab, report.COST.clocks(self.lab))
        self.addCleanup(self.check_logs)
        self.addCleanup(self.check_delivery)
        self.addCleanup(self.check_switch)
        self.tasks_before = self.tasks()

    def tearDown(self):
        """Ends the commands that the test has left in the guests. After a failure they would keep
        ports and modules from the tests that follow. A thread of the class may go on with its
        own."""
        for task in self.tasks() - self.tasks_before:
            if task.thread == threading.get_ident():
                self.addCleanup(task.give_up)  # before those of setUp(), as this is later

    def tasks(self):
        """The commands that run in the guests now."""
        return set().union(*(host.tasks() for host in self.hosts))

    def watch(self, host):
        """A stock program that holds the device open and tells of its events."""
        watcher = host.spawn(f"exec stdbuf -oL ibv_asyncwatch -d {host.rdma_device()}")
        self.addCleanup(watcher.give_up)
        self.assertTrue(wait_until(lambda: "async event FD" in watcher.output(), 30),
                        "ibv_asyncwatch did not open the device")
        return watcher

    def kill_switch(self):
        """As a crash does; the switch's parent process starts another one."""
        self.killed, self.ports_before = self.lab.wire.pid(), self.ports()
        os.kill(self.killed, signal.SIGKILL)
        type(self).switch = None

    def ports(self):
        """How many ports the switch has. Each card that is connected has one, or one for each of
        its engines."""
        return int(self.lab.wire.tell("ports").partition(";")[0])

    def await_switch(self):
        """Waits until the switch after a killed one has all cards, and then for the carriers. It
        asks the switch because a guest reads only the present state of its link, and may miss a
        short outage."""
        def has_all_cards():
            try:
                return self.lab.wire.pid() != self.killed and self.ports() == self.ports_before
            except (LabError, OSError):
                return False  # there is none yet

        self.assertTrue(wait_until(has_all_cards, 30), "the cards have not come back")
        for host in self.hosts:
            self.await_carrier("1", host)

    @staticmethod
    def carrier(host):
        return host.run(f"cat /sys/class/net/{NETDEV}/carrier").out.strip()

    def await_carrier(self, value, host):
        self.assertTrue(wait_until(lambda: self.carrier(host) == value, 30),
                        f"{host.name}'s carrier is not {value}")

    def check_switch(self):
        """No switch has died but by kill_switch(): the next one would hide it."""
        now = self.lab.wire.pid()
        before, type(self).switch = self.switch, now
        self.assertIn(before, (now, None), "tern-switch has died, see wire.log")

    def check_delivery(self):
        """Between hosts that share memory each packet is received, or counted as lost. Where a
        host has left or lost a link, only what happens after that can be told."""
        def read():
            counters = self.lab.wire.counters()
            missing = counters["direct"] - counters["direct_received"] - counters["direct_lost"]
            return (self.lab.wire.pid(), counters["links_cut"]), missing

        links, missing = self.ledger
        looks = []

        def told():
            looks.append(read())
            return looks[-1] == self.ledger or looks[-1][0] != links

        # The last look counts: where programs go on, the next one may meet a packet on its way.
        wait_until(told, 5)
        type(self).ledger = now = looks[-1]
        if now[0] == links:
            self.assertEqual(now[1], missing, "packets that nobody has counted")
            return
        # What was under way when a link was cut may still arrive.
        for _ in range(20):
            if not wait_until(lambda: read() != self.ledger, 0.5):
                break
            type(self).ledger = read()

    def await_gid_gone(self, host, device, address):
        """Waits until the GID table, which has others, has none of the address."""
        def gone():
            gids = host.gids(device)
            return gids and all(address not in (str(gid), str(gid.ipv4_mapped))
                                for _, gid, _ in gids)

        self.assertTrue(wait_until(gone, 10), host.gids(device))

    def await_traffic(self, host, *tasks, packets=100):
        """Waits until programs are under way: the host's card sends and receives so many packets
        while it waits. The tasks, if any are given, must still run then."""
        def moved():
            return host.hw_counter("sent_pkts") + host.hw_counter("rcvd_pkts")

        begin = moved()
        self.assertTrue(wait_until(lambda: moved() >= begin + packets or
                                   not all(task.running() for task in tasks), 60),
                        f"{host.name}'s card does nothing")
        self.assert_running(*tasks)

    def assert_running(self, *tasks):
        for task in tasks:
            self.assertTrue(task.running(), f"has ended: {task.said()}")

    def revoked(self):
        """The packets whose payload was taken back before the receiver had it, as the cards count
        them. What the wire drops because a receiver stalls is not among them."""
        return sum(table.get(name, 0) for host in self.hosts
                   for table in json.loads(host.run("rdma -j statistic show link").out)
                   for name in ("tx_revoked", "rx_revoked"))

    def dropped(self):
        """The frames that cards or the switch have dropped because somebody did not take them, and
        those that were revoked."""
        counters = self.lab.wire.counters()
        return counters["dropped"] + counters["direct_lost"]

    def without_drops(self, action, good=lambda result: True):
        """action(), again while the wire drops frames meanwhile or the result is not good. Returns
        the last result, and whether the wire has dropped nothing meanwhile."""
        for _ in range(self.CHANCES):
            before = self.dropped()
            result = action()
            dropped = self.dropped() - before
            if not dropped and good(result):
                break
            print(f"{dropped} frames dropped: again")
        return result, not dropped

    @contextlib.contextmanager
    def faulty_wire(self, **percent):
        """So many of a hundred frames have a fault in the block: faulty_wire(loss=1). Each of the
        faults must have occurred."""
        before = self.lab.wire.counters()
        try:
            for fault, share in percent.items():
                self.lab.wire.tell(f"{fault} {share}")
            yield
        finally:
            for fault in percent:
                self.lab.wire.tell(f"{fault} 0")
        now = self.lab.wire.counters()
        for counter in (self.FAULTS[fault] for fault in percent):
            self.assertGreater(now[counter], before[counter], counter)

    def settle(self):
        """Waits until nothing is under way: what programs cause may go on after their end. The
        cards and the switch have counted no packet for half a second. As the switch answers both
        times, it has taken what the cards had sent before the first time."""
        seen = []

        def quiet():
            seen.append((self.lab.wire.counters()["frames"], [
                (table.get("sent_pkts"), table.get("rcvd_pkts")) for host in self.hosts
                for table in json.loads(host.run("rdma -j statistic show link").out)]))
            return seen[-2:-1] == seen[-1:]

        self.assertTrue(wait_until(quiet, 30, 0.5), seen[-5:])

    @staticmethod
    def blocked(host):
        """The threads that wait for something that no signal interrupts, and where."""
        return [line for line in host.run(THREADS).out.splitlines() if line.startswith("D")]

    @classmethod
    def check_blocked(cls):
        """No thread of a guest stays so."""
        def check(host):
            if not wait_until(lambda: not cls.blocked(host), 20, 0.2):
                stacks = [f"{line}\n" + host.run(f"cat /proc/{line.split()[1]}/stack",
                                                 check=False).out for line in cls.blocked(host)]
                raise AssertionError(f"{host.name} has blocked threads:\n{''.join(stacks)}")

        cls.lab.each(check)

    def check_logs(self):
        """Every line on the console since the last test."""
        for host in self.hosts:
            host.check_alive()
            console = host.console()
            fresh = console[len(self.seen[host.name]):]
            self.seen[host.name] = console
            self.assertFalse(self.trouble(fresh), f"{host.name}'s kernel complains, see {host.log}")

    @classmethod
    def trouble(cls, text):
        return [line for line in trouble(text)
                if not (cls.TOLERATED and cls.TOLERATED.search(line))]

    @classmethod
    def tearDownClass(cls):
        """Threads that are still blocked, and what is in the log buffer and never came to the
        console."""
        cls.check_blocked()
        for host in cls.hosts:
            shown = cls.trouble(cls.seen[host.name])
            found = [line for line in cls.trouble(host.run("dmesg").out) if line not in shown]
            if found:
                raise AssertionError(f"{host.name}'s kernel complains: {found}")
            if stack.has_debug_kernel():
                cls.check_leaks(host)

    @staticmethod
    def check_leaks(host):
        """Asks kmemleak for objects without a reference. It needs two scans, and an object has to
        be five seconds old."""
        found = leaks(host.run("""
            sleep 6 && cd /sys/kernel/debug && echo scan >kmemleak && echo scan >kmemleak &&
            cat kmemleak""", timeout=600).out)
        if found:
            raise AssertionError(f"{host.name}'s kernel leaks memory:\n{''.join(found)}")

    def unload(self, host):
        """rmmod, once udev and the like have let go of the device. The kernel may give up the
        references of probes and performance events after the program that had them."""
        gone = wait_until(
            lambda: host.run("rmmod tern 2>&1", check=False, timeout=60).code == 0, 20)
        self.assertTrue(gone, host.run("rmmod tern; lsmod", check=False))
        self.assertNotEqual(host.run(f"[ -e /sys/class/net/{NETDEV} ]", check=False).code, 0)

    # --- programs in two halves: the first host serves, the second asks

    @staticmethod
    def address(host, ip):
        return host.ipv6 if ip == 6 else host.ipv4

    def verbs(self, host, address=None, option="-x"):
        """Options by which perftest (-x) and the pingpongs (-g) find the device and its GID."""
        device = host.rdma_device()
        return f"-d {device} {option} {host.gid_index(device, address)}"

    def patient(self, host, address=None, ack_timeout=pair.ACK_TIMEOUT):
        """As verbs(), of a perftest whose peer is not going to die."""
        return f"-u {ack_timeout} {self.verbs(host, address)}"

    def perftest(self, program, arguments="", timeout=180, hosts=None, ip=4,
                 ack_timeout=pair.ACK_TIMEOUT):
        """Over the IPv4 or the IPv6 GIDs; what the programs say to each other goes by IPv4."""
        server, client = hosts or self.hosts[:2]
        if ip == 6:
            # The kernel waits a second for the Ethernet address of the peer's GID.
            self.ping(client, server.ipv6, count=1)

        def command(host):
            options = self.patient(host, self.address(host, ip), ack_timeout)
            return f"{program} {options} {arguments}"

        return pair.perftest(server, client, command(server), command(client), timeout=timeout)

    def pingpong(self, arguments="", hosts=None, port=pair.PERFTEST_PORT, timeout=120):
        server, client = hosts or self.hosts[:2]
        command = f"{PATIENT} ibv_rc_pingpong -p {port} {arguments}"
        return pair.run_pair(
            server, f"{command} {self.verbs(server, option='-g')}",
            client, f"{command} {self.verbs(client, option='-g')} {server.ipv4}",
            port=port, timeout=timeout)

    # --- tern_verbs_check, of tests/guest

    @classmethod
    def verbs_check_halves(cls, server, client, cases, arguments="", seed=1):
        """The commands of the server and the client, of which the latter has the arguments."""
        def command(host):
            device = host.rdma_device()
            return (f"/opt/tern/bin/tern_verbs_check --dev {device} "
                    f"--gid-index {host.gid_index(device)} --seed {seed}")

        return (f"{command(server)} server",
                f"{command(client)} {arguments} --peer {server.ipv4} {cases} stop")

    def verbs_check(self, cases, arguments="", hosts=None, seed=1, timeout=300):
        """Returns what the client has said: no case has failed."""
        server, client = hosts or self.hosts[:2]
        halves = self.verbs_check_halves(server, client, cases, arguments, seed)
        said = pair.run_pair(server, halves[0], client, halves[1], port=self.VERBS_CHECK_PORT,
                             timeout=timeout)
        self.assertRegex(said, r"\d cases, 0 failed")
        return said

    # --- the Ethernet side

    def ping(self, host, address, size=56, count=3):
        """Pings that must all come back, whole: no fragments. Again if the host could not send
        them: its request for the Ethernet address may have begun when the peer was away."""
        command = f"ping -q -M do -i 0.2 -w 20 -c {count} -s {size} {address}"
        try:
            return host.run(command)
        except CommandError as error:
            if " errors, " not in str(error):
                raise
        return host.run(command)

    def transfer(self, source, target, mebibytes=16, address=None, socat="socat"):
        """Sends random bytes over TCP and compares their checksums."""
        port = 9999
        receiver = target.spawn(f"{socat} -u TCP6-LISTEN:{port},ipv6only=0,reuseaddr - | sha256sum")
        pair.await_listener(target, port)
        source.run(f"head -c {mebibytes}M /dev/urandom >/tmp/random")
        source.run(f"{socat} -u /tmp/random TCP:{address or target.ipv4}:{port}", timeout=180)
        received = receiver.wait().out.split()[0]
        sent = source.run("sha256sum /tmp/random; rm /tmp/random").out.split()[0]
        self.assertEqual(sent, received)
