# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts on two machines: the labs' Ethernets are one, by TAP interfaces and a VXLAN.

The machines are network namespaces with a cable between them. docs/machines.md has the commands
for true ones.
"""

import json
import os
import subprocess
import tempfile
import unittest

from kernel_log import trouble
from scenario import Options, main, report, wait_until
from ternlab import paths
from ternlab.paths import SCRIPTS

LAB = SCRIPTS / "lab"
MTU = "1400"  # what a VXLAN takes over an Ethernet of 1500 bytes, rounded down
CABLE = """
    ip -n {one} link add cable type veth peer name cable netns {two}"""
MACHINE = """
    ip link set lo up
    ip link set cable up
    ip address add 192.0.2.{own}/24 dev cable
    ip link add lab-vxlan type vxlan id 77 dstport 4789 remote 192.0.2.{other} dev cable
    ip tuntap add dev lab-tap mode tap
    ip link add lab-bridge type bridge
    ip link set lab-vxlan master lab-bridge up
    ip link set lab-tap master lab-bridge up
    ip link set lab-bridge up"""


# The topology has one host and one switch. The other link of the switch ends at the TAP interface.
TOPOLOGY = """
switch = [{{ name = "tor" }}]
host = [{{ name = "inside{number}" }}, {{ name = "outside", tap = "lab-tap" }}]
[[link]]
ends = ["*side*", "tor"]
rate = "200 Mb/s"
"""


class Machine:
    """One of the two, with its lab."""

    def __init__(self, number, kind=""):
        self.number = number
        self.name = f"tern-{os.getpid()}-{kind}{number}"
        self.inside = ["ip", "netns", "exec", self.name]
        self.lab = f"{report.NAME}.{kind}{number}"

    def run(self, *command):
        return subprocess.run([*self.inside, *command], check=False, capture_output=True,
                              text=True)

    def do(self, *command):
        done = self.run(*command)
        if done.returncode:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def lab_does(self, *words):
        return self.do(LAB, "--lab", self.lab, *words)

    def host_does(self, *words):
        """The one host of its lab."""
        return self.lab_does("run", "all", "--", *words)

    def start(self, *hosts):
        report.COST.logs.append(paths.logs(self.lab))
        self.do("sh", "-ec", MACHINE.format(own=self.number, other=3 - self.number))
        self.lab_does("up", *hosts, "--first", str(self.number), "--mtu", MTU, "--mem", Options.mem)

    def carried(self):
        """The bytes that have come by the VXLAN."""
        return int(self.do("cat", "/sys/class/net/lab-vxlan/statistics/rx_bytes"))


class TwoMachines(unittest.TestCase):
    """What labs on two machines have in common."""

    KIND = ""

    @classmethod
    def setUpClass(cls):
        cls.machines = one, two = Machine(1, cls.KIND), Machine(2, cls.KIND)
        for machine in cls.machines:
            subprocess.run(["ip", "netns", "add", machine.name], check=True)
            cls.addClassCleanup(subprocess.run, ["ip", "netns", "delete", machine.name])
        subprocess.run(["sh", "-ec", CABLE.format(one=one.name, two=two.name)], check=True)
        for machine in cls.machines:
            cls.addClassCleanup(machine.run, LAB, "--lab", machine.lab, "down")
            cls.start(machine)

    @classmethod
    def start(cls, machine):
        raise NotImplementedError

    @classmethod
    def tearDownClass(cls):
        for machine in cls.machines:
            found = trouble(machine.host_does("dmesg"))
            if found:
                raise AssertionError(f"the kernel of {machine.lab}'s host complains: {found}")

    def end_of(self, asking):
        """What it has said, and its exit code."""
        return asking.communicate(timeout=120)[0], asking.returncode


class TwoWires(TwoMachines):
    """Labs without a topology."""

    @classmethod
    def start(cls, machine):
        machine.start("1", "--tap", "lab-tap")

    def begin(self, *command):
        """A program in two halves that has begun: the first machine's host serves the second's."""
        server, client = self.machines
        server.lab_does("serve", "host1", "--", *command)
        asking = subprocess.Popen(
            [*client.inside, LAB, "--lab", client.lab, "run", "host2", "--", *command, "host1"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(asking.wait)
        self.addCleanup(asking.kill)
        self.addCleanup(asking.stdout.close)
        return asking

    def pingpong(self, *arguments):
        return self.begin("ibv_rc_pingpong", "-g", "3", *arguments)

    def test_ethernet(self):
        # With -w, ping waits for all replies, and fails without them.
        self.machines[1].host_does("ping -q -c 3 -i 0.2 -w 20 host1")

    def test_rdma(self):
        """The data is right, and has gone from machine to machine."""
        before = [machine.carried() for machine in self.machines]
        said, code = self.end_of(self.pingpong("-c", "-n", "500", "-s", "16384"))
        self.assertEqual(code, 0, said)
        self.assertIn("500 iters", said)
        for machine, old in zip(self.machines, before):
            self.assertGreater(machine.carried() - old, 500 * 16384)

    def test_cable_between_the_machines(self):
        """Without it the retries are spent; with it all is as before. The client of ib_write_bw
        has a request under way at any time, so it is the one that fails."""
        server, client = self.machines
        before = client.carried()
        asking = self.begin("ib_write_bw", "-D", "600")
        self.assertTrue(wait_until(lambda: client.carried() - before > 1 << 20, 60))
        server.do("ip", "link", "set", "cable", "down")
        try:
            said, code = self.end_of(asking)
        finally:
            server.do("ip", "link", "set", "cable", "up")
        self.assertNotEqual(code, 0)
        self.assertIn("status 12", said)  # transport retry counter exceeded
        # It may have ended by itself, and must have let go of its port.
        server.host_does("pkill ib_write_bw; for i in $(seq 600); do "
                         "ss -Htln sport = 18515 | grep -q . || break; sleep 0.1; done")
        self.assertEqual(self.end_of(self.pingpong("-n", "10"))[1], 0)

    def test_another_first_number(self):
        """A host that is added has no number of the other machine's."""
        two = self.machines[1]
        two.lab_does("add", "--mtu", MTU, "--mem", Options.mem)
        self.addCleanup(two.lab_does, "remove", "host3")
        self.machines[0].host_does("ping -q -c 2 -i 0.2 -w 20 host3")

    def test_refused(self):
        done = self.machines[0].run(LAB, "--lab", "never", "up", "--tap", "nowhere")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr.splitlines()[-1],
                         "^lab: tern-switch: nowhere: there is no such interface;")


class TwoFabrics(TwoMachines):
    """Labs with a topology, of which the TAP interface is an end of a link."""

    KIND = "fabric"

    @classmethod
    def start(cls, machine):
        with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="ascii") as file:
            file.write(TOPOLOGY.format(number=machine.number))
            file.flush()
            machine.start("--topology", file.name)

    def test_rdma(self):
        """The packets pass both fabrics."""
        one, two = self.machines
        one.lab_does("serve", "inside1", "--", "ibv_rc_pingpong", "-g", "3", "-c", "-n", "100")
        said = two.lab_does("run", "inside2", "--", "ibv_rc_pingpong", "-g", "3", "-c", "-n", "100",
                            "10.77.0.1")
        self.assertIn("100 iters", said)
        for machine in self.machines:
            report_of = json.loads(machine.lab_does("fabric", "--json"))
            ends = {end["name"]: end for link in report_of["links"] for end in link["ends"]}
            self.assertGreater(ends["outside"]["tx_bytes"], 100 * 4096)
            self.assertGreater(ends["outside"]["rx_bytes"], 100 * 4096)

    def test_refused(self):
        one = self.machines[0]
        for text, why in (
                (TOPOLOGY.format(number=9).replace("lab-tap", "nowhere"),
                 "^lab: tern-switch: nowhere: there is no such interface;"),
                (TOPOLOGY.format(number=9).replace("tap =", "cards = 2, tap ="),
                 "^lab: .*:3: host.tap: is for one host with one card$")):
            with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="ascii") as file:
                file.write(text)
                file.flush()
                done = one.run(LAB, "--lab", "never", "up", "--topology", file.name)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr.splitlines()[-1], why)


if __name__ == "__main__":
    main()
