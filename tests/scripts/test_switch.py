# SPDX-License-Identifier: GPL-2.0-or-later
"""tern-switch as a program: it starts again when it dies, it is a port of a TAP interface, and it
takes the topologies of examples/.

argv[1] is tern-switch.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import progress, topology  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.host import Options  # noqa: E402
from ternlab.wire import Wire  # noqa: E402

SWITCH = None
TOPOLOGY = """
[[switch]]
name = "tor"
[[host]]
name = "h"
count = 2
[[link]]
ends = ["h*", "tor"]
rate = "1 Gb/s"
"""

# The topologies for labs: hosts with the cards of each, the rate of these in Mb/s, switches.
EXAMPLES = {
    "lab-incast": ({"receiver": ["receiver"],
                    **{f"sender{n}": [f"sender{n}"] for n in range(1, 5)}}, 200, ["tor"]),
    "lab-leaf-spine": ({f"host{n}": [f"host{n}.1", f"host{n}.2"] for n in range(1, 5)}, 200,
                       ["leaf1", "leaf2", "spine1", "spine2"]),
    "lab-two-hosts": ({"host1": ["host1"], "host2": ["host2"]}, 500, ["tor"]),
}

TAP = "lab0"
# Runs a program in a network namespace of its own, as root of a user namespace.
IN_NETWORK = ["unshare", "--user", "--map-root-user", "--net"]
MAKE_TAP = f"""
    ip tuntap add dev {TAP} mode tap && ip address add 10.9.0.1/24 dev {TAP} &&
    ip link set {TAP} up && exec "$@" """
OWN_MAC, OWN_ADDRESS = bytes.fromhex("525400770001"), socket.inet_aton("10.9.0.2")
BROADCAST = b"\xff" * 6
ARP = struct.Struct(">6s6sH HHBBH 6s4s6s4s")
REQUEST, REPLY = 1, 2


def arp(operation, to, source, sender, asked):
    """An Ethernet frame. sender: its MAC and IP address; asked: those that it is about."""
    return ARP.pack(to, source, 0x806, 1, 0x800, 6, 4, operation, *sender, *asked)


def wait_until(condition, seconds=20):
    """Of a switch that may not listen yet."""
    def holds():
        with contextlib.suppress(LabError, OSError):
            return condition()
        return None

    return progress.wait_until(holds, seconds, 0.02)


class Restart(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def start(self, topology=TOPOLOGY):
        """The process that keeps the switch."""
        self.wire = Wire(self.folder)
        self.wire.topology.write_text(topology, encoding="ascii")
        keeper = subprocess.Popen(
            [SWITCH, "--listen", self.wire.path, "--control", self.folder / "wire.ctl",
             "--topology", self.wire.topology, "--restart"],
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(keeper.stderr.close)
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.kill)
        return keeper

    def await_switch(self, other_than=0):
        self.assertTrue(wait_until(lambda: self.wire.pid() != other_than))
        return self.wire.pid()

    def test_comes_back(self):
        """As often as a signal ends it, with its topology, and until it is told to end."""
        keeper = self.start()
        pid = self.await_switch()
        self.assertNotEqual(pid, keeper.pid)
        for number in (signal.SIGKILL, signal.SIGSEGV):
            os.kill(pid, number)
            pid = self.await_switch(pid)
            self.assertIn('"h1"', self.wire.tell("fabric"))
        keeper.terminate()
        self.assertEqual(keeper.wait(20), 0)
        self.assertEqual(keeper.stderr.read().count("it starts again"), 2)
        self.assertFalse(self.wire.path.exists())

    def test_dies_with_its_keeper(self):
        keeper = self.start()
        pid = self.await_switch()
        keeper.kill()
        keeper.wait()
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}")))

    def test_an_error_ends_both(self):
        keeper = self.start("[[switch]]\n")
        self.assertEqual(keeper.wait(20), 1)
        self.assertIn("switch.name", keeper.stderr.read())


class Examples(unittest.TestCase):
    def test_known(self):
        """No example is without a test."""
        self.assertEqual({path.stem for path in (TOP / "examples").glob("lab-*.toml")},
                         set(EXAMPLES))

    def test_hosts(self):
        """The lab gets the hosts and cards that the file has."""
        with mock.patch.dict(os.environ, TERN_SWITCH=SWITCH):
            for name, (cards, rate, _) in EXAMPLES.items():
                with self.subTest(name):
                    hosts = topology.hosts(TOP / f"examples/{name}.toml", Options())
                    self.assertEqual(
                        [(host.name, host.cards, host.edges) for host in hosts],
                        [(host, len(names), tuple((card, rate) for card in names))
                         for host, names in cards.items()])

    def test_wrong_files(self):
        """The lab's error names file, line and key."""
        link = "[[link]]\nends = ['*[!r]', 'tor']\n"
        for line, message, text in (
                (1, "host: is missing", "[[switch]]\nname = 'tor'\n"),
                (4, 'host.name: "all" means every host',
                 f"[[switch]]\nname = 'tor'\n[[host]]\nname = 'all'\n{link}"),
                (2, "host: all are TAP interfaces",
                 f"switch = [{{ name = 'tor' }}]\nhost = [{{ name = 'a', tap = 'x' }}]\n{link}"),
                (2, "Error while parsing", "[[switch]]\nname = tor\n")):
            with (self.subTest(message), tempfile.NamedTemporaryFile("w", suffix=".toml") as file,
                  mock.patch.dict(os.environ, TERN_SWITCH=SWITCH)):
                file.write(text)
                file.flush()
                with self.assertRaisesRegex(LabError,
                                            f"^{re.escape(file.name)}:{line}: {message}"):
                    topology.hosts(file.name, Options())

    def test_unused_keys(self):
        """The lab says what has no effect in it."""
        path = TOP / "examples/lab-incast.toml"
        with (mock.patch.dict(os.environ, TERN_SWITCH=SWITCH),
              mock.patch.object(topology, "say") as say):
            topology.hosts(path, Options())
        say.assert_called_once_with(f"{path}: only tern-sim uses duration, warmup, flow")

    def test_runs(self):
        """The switch comes up with each, has all that the file has, and ends when told to."""
        for name, (cards, rate, switches) in EXAMPLES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                wire = Wire(pathlib.Path(scratch))
                switch = subprocess.Popen(
                    [SWITCH, "--listen", wire.path, "--control", wire.path.with_name("wire.ctl"),
                     "--topology", TOP / f"examples/{name}.toml"])
                self.addCleanup(switch.wait)
                self.addCleanup(switch.kill)
                self.assertTrue(wait_until(lambda wire=wire: wire.tell("fabric")))
                told = json.loads(wire.tell("fabric"))
                self.assertEqual([one["name"] for one in told["switches"]], switches)
                # The name of the card and the rate of each link between a card and a switch.
                edges = [(end["name"], link["rate"] / 1e6) for link in told["links"]
                         for end in link["ends"] if end["name"] not in switches]
                self.assertEqual(sorted(edges), sorted((card, rate) for names in cards.values()
                                                       for card in names))
                switch.terminate()
                self.assertEqual(switch.wait(20), 0)
                self.assertFalse(wire.path.exists())


class Names(unittest.TestCase):
    def test_of_hosts(self):
        """A host may have any name: no socket of the wire is in the place of another one, or of a
        host's file."""
        names = ("ctl", "shm", "stream", "wire", "qmp", "channel", "ssh", "seed", "card0")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        wire = Wire(folder)
        wire.topology.write_text("switch = [{ name = 'tor' }]\n" + "".join(
            f"[[host]]\nname = '{name}'\n[[link]]\nends = ['{name}', 'tor']\n"
            for name in names), encoding="ascii")
        self.addCleanup(wire.stop)
        with mock.patch.dict(os.environ, TERN_SWITCH=SWITCH):
            wire.start(folder / "log", True)
        self.assertEqual(len(json.loads(wire.tell("fabric"))["links"]), len(names))
        sockets = {path for path in folder.iterdir() if path.is_socket()}
        self.assertEqual(len(sockets), 2 * len(names) + 1)
        self.assertEqual(sockets & {folder / f"{name}.{kind}" for name in names for kind in (
            "qmp", "channel", "ssh", "seed", "card0")}, set())


class Tap(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.wire = Wire(pathlib.Path(scratch.name))
        self.command = [SWITCH, "--listen", self.wire.path,
                        "--control", self.wire.path.with_name("wire.ctl")]

    def start(self):
        """The switch, with a TAP interface that is this machine's 10.9.0.1."""
        switch = subprocess.Popen([*IN_NETWORK, "sh", "-c", MAKE_TAP, "sh", *self.command,
                                   "--tap", TAP], stderr=subprocess.PIPE, text=True)
        self.addCleanup(switch.stderr.close)
        self.addCleanup(switch.wait)
        self.addCleanup(switch.kill)
        self.assertTrue(wait_until(lambda: self.wire.tell("ports")))
        # Before that the kernel drops what it sends there.
        self.assertTrue(wait_until(
            lambda: "state UP" in self.ip(switch, "link", "show", "dev", TAP)))
        return switch

    @staticmethod
    def ip(switch, *words):
        """What ip prints in the network namespace of the switch."""
        return subprocess.run(["nsenter", "--target", str(switch.pid), "--user", "--net", "ip",
                               *words], check=True, capture_output=True, text=True).stdout

    def connect(self):
        """As a host does."""
        host = socket.socket(socket.AF_UNIX)
        self.addCleanup(host.close)
        host.settimeout(20)
        host.connect(str(self.wire.path))
        return host

    def ask(self, host):
        """Sends an ARP request for the TAP interface's address."""
        request = arp(REQUEST, BROADCAST, OWN_MAC, (OWN_MAC, OWN_ADDRESS),
                      (bytes(6), socket.inet_aton("10.9.0.1")))
        host.sendall(struct.pack(">I", len(request)) + request)

    def answer(self, host):
        """The first reply; the kernel says other things about a new interface."""
        stream = host.makefile("rb")
        while True:
            frame = stream.read(struct.unpack(">I", stream.read(4))[0])
            if len(frame) >= ARP.size:
                fields = ARP.unpack(frame[:ARP.size])
                if fields[2] == 0x806 and fields[7] == REPLY:
                    return fields

    def test_both_directions(self):
        """The kernel behind the interface gets a host's frame, and its answer comes to the host."""
        self.start()
        host = self.connect()
        self.ask(host)
        destination, source, *_, mac, address, own, _ = self.answer(host)
        self.assertEqual((destination, own), (OWN_MAC, OWN_MAC))
        self.assertEqual((source, address), (mac, socket.inet_aton("10.9.0.1")))
        # The switch has learned the address of the TAP interface.
        self.assertIn(mac.hex(":"), self.wire.tell("ports"))

    def test_interface_goes(self):
        """The hosts have each other still."""
        switch = self.start()
        one, two = self.connect(), self.connect()
        self.assertTrue(wait_until(lambda: self.wire.tell("ports").startswith("3")))
        self.ip(switch, "link", "delete", TAP)
        self.assertTrue(wait_until(lambda: self.wire.tell("ports").startswith("2")))
        self.ask(one)
        self.assertEqual(len(two.makefile("rb").read(4 + ARP.size)), 4 + ARP.size)
        switch.terminate()
        self.assertEqual(switch.wait(20), 0)
        self.assertRegex(switch.stderr.read(), rf"^tern-switch: {TAP}: .+\n$")

    def test_refusals(self):
        topology = self.wire.topology
        topology.write_text(TOPOLOGY, encoding="ascii")
        for arguments, why in (
                (["--tap", "lab1"], "lab1: there is no such interface; `ip tuntap add"),
                (["--tap", "lo"], "lo: this is no TAP interface"),
                (["--tap", "interface-number-1"], "too long for the name of an interface"),
                (["--topology", topology, "--tap", "lo"], "are in its file: .*tap")):
            with self.subTest(arguments=arguments):
                done = subprocess.run([*IN_NETWORK, *self.command, *arguments], check=False,
                                      capture_output=True, text=True, timeout=20)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, rf"^tern-switch: .*{why}.*\n$")


if __name__ == "__main__":
    SWITCH = sys.argv.pop(1)
    unittest.main()
