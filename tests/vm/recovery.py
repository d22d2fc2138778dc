# SPDX-License-Identifier: GPL-2.0-or-later
"""A card that fails, is reset or loses its power comes back by itself, under traffic: the interface
as it was, and an RDMA device that programs can open."""

import contextlib
import itertools
import json
import time

from agent import Agent, AgentError
from programs import Programs
from scenario import NETDEV, main, pair, wait_until
from ternlab import inject, query
from ternlab.host import card_id

OWN_MAC, EXTRA = "52:54:00:99:00:01", "10.81.0.1/24"
# What a person may have set. None of it is what the driver sets by itself.
SETTINGS = (f"ip link set {NETDEV} address {OWN_MAC}", f"ip link set {NETDEV} mtu 4000",
            f"ip link set {NETDEV} allmulticast on", f"ip address add {EXTRA} dev {NETDEV}",
            *(f"ethtool {option}" for option in (
                f"-L {NETDEV} combined 1", f"-G {NETDEV} rx 256", f"-K {NETDEV} tso off",
                f"-C {NETDEV} rx-usecs 20")))
# And how to look at it. The order of flags and states may differ.
ASPECTS = (f"cat /sys/class/net/{NETDEV}/ifindex", f"ip -o link show {NETDEV}",
           f"ip -o address show {NETDEV} scope global",
           *(f"ethtool {option} {NETDEV}" for option in ("-l", "-g", "-k", "-c", "-x")))
SUSPEND = "echo devices >/sys/power/pm_test && echo mem >/sys/power/state"
PM_DELAY = "/sys/module/suspend/parameters/pm_test_delay"


class Recovery(Programs):
    COLUMNS = ("recovered",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host, cls.peer = cls.hosts
        cls.device = cls.devices[cls.host.name]
        cls.pci = cls.host.pci()
        path = f"/sys/bus/pci/devices/{cls.pci}"
        cls.bridge = cls.host.run(f"basename $(dirname $(readlink -f {path}))").out.strip()
        for command in SETTINGS:
            cls.host.run(command)
        cls.host.run(f"devlink health set pci/{cls.pci} reporter fw_fatal grace_period 0")
        cls.peer.run("ip neigh flush all")
        cls.settings = cls.look_until_it_stays()

    @classmethod
    def look(cls):
        return [cls.host.run(command).out for command in ASPECTS]

    @classmethod
    def look_until_it_stays(cls):
        """The kernel's worker of links may give the interface its state later."""
        looks = [cls.look()]

        def stays():
            looks.append(cls.look())
            return looks[-1] == looks[-2] and "state UP" in "".join(looks[-1])

        if not wait_until(stays, 20, 0.5):
            raise AssertionError(f"the interface has no settings that stay: {looks[-2:]}")
        return looks[-1]

    def await_settings(self):
        wait_until(lambda: self.look() == self.settings, 20)
        self.assertEqual(self.look(), self.settings)

    def await_health(self, **wanted):
        """devlink may tell of the recovery after udev has shown the device."""
        self.assertTrue(wait_until(lambda: wanted.items() <= self.fw_fatal().items(), 20),
                        (wanted, self.fw_fatal()))

    def health(self, reporter):
        said = self.host.run(f"devlink -j health show pci/{self.pci} reporter {reporter}").out
        return json.loads(said)["health"][f"pci/{self.pci}"][0]

    def fw_fatal(self):
        return self.health("fw_fatal")

    def openable(self):
        """The devices that programs can open, with their GUIDs."""
        return self.host.run("ibv_devices | tail -n +3", check=False).out

    # --- what goes on meanwhile

    @contextlib.contextmanager
    def traffic(self):
        """RDMA that the host receives, and TCP that it sends."""
        command = "ib_write_bw -s 65536 -D 600"
        sink = self.peer.spawn("socat -u TCP-LISTEN:9998 OPEN:/dev/null")
        pair.await_listener(self.peer, 9998, sink)
        tasks = [sink, self.host.spawn(f"socat -u /dev/zero TCP:{self.peer.ipv4}:9998"),
                 self.host.spawn(f"{command} {self.verbs(self.host)}")]
        pair.await_listener(self.host, pair.PERFTEST_PORT)
        tasks.append(self.peer.spawn(f"{command} {self.verbs(self.peer)} {self.host.ipv4}"))
        try:
            self.await_traffic(self.peer, *tasks)
            yield
        finally:
            for task in tasks:
                task.give_up()

    @contextlib.contextmanager
    def comes_back(self, row):
        """Whatever the test does to the card under traffic."""
        with self.cell(row, "recovered"):
            names, link = self.openable(), f"ip -o link show {NETDEV}"
            self.assertTrue(names)
            with self.traffic():
                watcher = self.host.spawn(f"ibv_asyncwatch -d {self.device}")
                self.assertTrue(wait_until(lambda: "async event FD" in watcher.said(), 30))
                yield
                heard = wait_until(lambda: "DEVICE_FATAL" in watcher.said(), 30)
                watcher.give_up()
                self.assertTrue(heard, watcher.said())
                self.assertTrue(wait_until(lambda: self.openable() == names, 30), self.openable())
            self.assertTrue(wait_until(lambda: "LOWER_UP" in self.host.run(link).out, 20))
            self.await_settings()
            self.await_health(state="healthy")
            self.host.gid_index(self.device)
            self.ping(self.peer, self.host.ipv4)
            self.pingpong("-n 20 -c")

    # --- what happens to the card

    def test_fatal(self):
        """It may no longer read memory, which it finds out at the next command."""
        before = self.fw_fatal()
        with self.comes_back("a fatal error"):
            self.host.run(f"setpci -s {self.pci} COMMAND=0:4; ethtool -S {NETDEV}", check=False)
        self.await_health(error=before["error"] + 1, recover=before["recover"] + 1)
        self.perftest("ib_write_bw", "-s 65536 -n 500")

    def test_fatal_during_changes(self):
        """The interface stays up if it is a change of its settings that meets the failure."""
        for command in (f"ip link set {NETDEV} mtu 3000", f"ethtool -G {NETDEV} rx 512"):
            with self.comes_back(f"a failure at {command}"):
                failed = self.host.run(f"setpci -s {self.pci} COMMAND=0:4; {command}", check=False)
                self.assertNotEqual(failed.code, 0)

    def test_fatal_while_it_comes_up(self):
        """At whatever point: the card works in the end, and nobody calls a dead card healthy."""
        link, turns = f"ip -o link show {NETDEV}", 10
        with self.cell("failures while it comes up", "recovered"):
            reload = f"devlink dev reload pci/{self.pci}"
            begun = time.monotonic()
            self.host.run(reload)
            took, before = time.monotonic() - begun, self.fw_fatal()["error"]
            for nth in range(turns):
                self.host.run(f"""
                    (sleep {took * nth / turns:.3f}; setpci -s {self.pci} COMMAND=0:4) &
                    {reload}; wait""", check=False)
                # A failure that nothing has noticed yet comes out at the next command.
                self.host.run(f"ethtool -S {NETDEV}", check=False)
                works = wait_until(lambda: self.fw_fatal()["state"] == "healthy" and
                                   "LOWER_UP" in self.host.run(link).out, 30, 0.5)
                self.assertTrue(works, (nth, self.fw_fatal(), self.host.run(link).out))
            # Failures before the driver resets the card have no effect.
            self.assertGreater(self.fw_fatal()["error"], before)
            self.await_settings()
            self.host.gid_index(self.device)
            self.pingpong("-n 20 -c")

    def test_queue_that_does_not_restart(self):
        """The card leaves the restart of a queue unanswered. Both reporters are healthy at last."""
        reporter, errors = f"pci/{self.pci} reporter tx", self.health("tx")["error"]
        with self.comes_back("no answer to a restart"):
            inject.hold_commands(self.host, 0, True, answers=1)
            self.host.run(f"devlink health test {reporter}")
        self.assertTrue(wait_until(lambda: self.health("tx")["state"] == "healthy", 20),
                        self.health("tx"))
        self.assertGreater(self.health("tx")["error"], errors)

    def test_out_of_reach(self):
        """Its registers read as all-ones, and the reset that is to stop it is lost. The driver also
        ends bus mastering, and the card may have it back only after the next reset."""
        before = self.fw_fatal()
        with self.comes_back("no access to registers"):
            self.host.run(f"setpci -s {self.pci} COMMAND=0:2; ethtool -S {NETDEV}", check=False)
        self.await_health(error=before["error"] + 1, recover=before["recover"] + 1)

    def test_silent(self):
        """The driver gives up a card that leaves a command unanswered."""
        with self.comes_back("no answer to a command"):
            inject.hold_commands(self.host, 0, True)
            self.host.run(f"ethtool -S {NETDEV}", check=False)

    def test_slow(self):
        """The driver does not give up a card whose commands take long while it answers some. The
        third command waits longer than the card may answer none."""
        errors = self.fw_fatal()["error"]
        with self.cell("slow commands", "recovered"):
            inject.hold_commands(self.host, 0, True)
            ports = range(9101, 9104)
            servers = [self.host.spawn(f"ibv_rc_pingpong -d {self.device} -p {port}")
                       for port in ports]
            self.addCleanup(lambda: [server.give_up() for server in servers])
            for _ in range(3):
                time.sleep(7.5)
                inject.hold_commands(self.host, 0, True, answers=1)
            inject.hold_commands(self.host, 0, False)
            for port, server in zip(ports, servers):
                pair.await_listener(self.host, port, server)
            self.assertEqual(self.fw_fatal()["error"], errors)

    def holdings(self):
        """The RDMA objects that the kernel has, and those that the card has."""
        (engine,) = query.card_of(self.host, 0)["engines"]
        return (self.host.run("rdma -j resource show").out,
                {kind: len(engine[kind]) for kind in ("eqs", "cqs", "srqs", "wqs", "qps")},
                engine["commands"]["refuse_in"])

    def test_refused_commands(self):
        """Each command of a program that creates and changes every kind of object is refused once:
        the call fails with an error, and leaves nothing behind."""
        agent = Agent(self.host, self.device)
        self.addCleanup(agent.close)
        where = {"gid": f"0000:0000:0000:0000:0000:ffff:0a4d:{self.host.index:04x}",
                 "gid_index": self.host.gid_index(self.device)}
        agent.all_kinds(**where)
        *before, _ = self.holdings()
        refused = []
        with self.cell("refused commands", "recovered"):
            for nth in itertools.count(1):
                inject.refuse_command(self.host, 0, nth)
                try:
                    agent.all_kinds(**where)
                except AgentError as error:
                    self.assertEqual(error.errno, "ENOMEM", error)
                    refused.append(str(error))
                *after, left = self.holdings()
                self.assertEqual(after, before, f"command {nth}")
                self.assertEqual(len(refused), nth - (left > 0), f"command {nth} did not matter")
                if left:
                    break
            inject.refuse_command(self.host, 0, 0)
            self.assertGreater(len(refused), 25)
            self.pingpong("-n 20 -c")

    def test_reset_by_others(self):
        """Its base addresses are gone, too."""
        with self.comes_back("the bridge resets its bus"):
            self.host.run(f"setpci -s {self.bridge} BRIDGE_CONTROL=40:40; "
                          f"setpci -s {self.bridge} BRIDGE_CONTROL=0:40")

    def test_function_reset(self):
        with self.comes_back("a function level reset"):
            self.host.run(f"echo 1 >/sys/bus/pci/devices/{self.pci}/reset")

    def test_reload(self):
        with self.comes_back("devlink dev reload"):
            self.host.run(f"devlink dev reload pci/{self.pci}")

    def test_error_of_pcie(self):
        """The root port reports it, and Linux asks the driver to stop and to go on."""
        with self.comes_back("an error of PCI Express"), self.host.qmp() as monitor:
            # QEMU reports an error upwards only with SERR#, which its firmware leaves off.
            self.host.run(f"setpci -s {self.pci} COMMAND=100:100; "
                          f"setpci -s {self.bridge} COMMAND=100:100 BRIDGE_CONTROL=2:2")
            self.assertIn("OK", monitor.human(f"pcie_aer_inject_error {card_id(0)} POISON_TLP"))

    def test_suspend(self):
        """All that drivers do for it. Then the kernel wakes up without having slept."""
        with self.comes_back("suspend"):
            self.host.run(f"echo 0 >{PM_DELAY}; {SUSPEND}")

    def test_sleep(self):
        """The machine sleeps (ACPI S3) and is reset when it wakes up."""
        with self.comes_back("sleep"), self.host.qmp() as monitor:
            self.host.spawn("echo none >/sys/power/pm_test; echo mem >/sys/power/state")
            self.assertTrue(wait_until(
                lambda: monitor.execute("query-status")["status"] == "suspended", 30))
            monitor.execute("system_wakeup")

    # --- what needs a person

    def test_again_and_again(self):
        """A card that fails within the grace period stays down until somebody asks for it."""
        reporter = f"pci/{self.pci} reporter fw_fatal"
        self.host.run(f"devlink health set {reporter} grace_period 600000")
        try:
            with self.cell("two failures", "recovered"):
                for state in ("healthy", "error"):
                    errors = self.fw_fatal()["error"]
                    self.host.run(f"setpci -s {self.pci} COMMAND=0:4; ethtool -S {NETDEV}",
                                  check=False)
                    told = wait_until(lambda: self.fw_fatal()["error"] == errors + 1 and
                                      self.fw_fatal()["state"] == state, 20)
                    self.assertTrue(told, self.fw_fatal())
                self.host.run(f"devlink health recover {reporter}")
                self.await_health(state="healthy")
        finally:
            self.host.run(f"devlink health set {reporter} grace_period 0")
        self.await_settings()
        self.pingpong("-n 20 -c")


if __name__ == "__main__":
    main()
