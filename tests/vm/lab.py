# SPDX-License-Identifier: GPL-2.0-or-later
"""What a person asks of the lab beside programs: a folder of this machine, the labs that are up,
hosts that come, go and lose their power."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from scenario import Options, Scenario, main, pair, report, wait_until
from ternlab import stack
from ternlab.image import Image
from ternlab.paths import SCRIPTS

LAB = SCRIPTS / "lab"


def run(*words):
    return subprocess.run([LAB, *words], capture_output=True, text=True, check=False)


def status(name):
    """What `lab status` tells of the lab, once all hosts answer within the time that the command
    gives them."""
    def told():
        done = run("--lab", name, "status", "--json")
        return done.returncode == 0 and json.loads(done.stdout)

    answer = wait_until(told, 30)
    if not answer:
        raise AssertionError(run("--lab", name, "status"))
    return answer


class Lab(Scenario):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="a folder, shared ")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.HOSTS = (Options(share=scratch.name), Options(share=scratch.name))
        super().setUpClass()

    def test_share(self):
        """What this machine or a host writes, all see."""
        (self.folder / "here").write_text("of this machine\n", encoding="ascii")
        first, second = self.hosts
        self.assertEqual(first.run("cat /share/here").out, "of this machine\n")
        second.run("echo of a host >/share/there")
        self.assertEqual((self.folder / "there").read_text(encoding="ascii"), "of a host\n")
        self.assertEqual(first.run("cat /share/there").out, "of a host\n")

    def test_share_refused(self):
        told = run("--lab", "never", "up", "--share", "/nowhere")
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertEqual(told.stderr, "lab: there is no folder /nowhere to share\n")

    def test_new_module_indexes(self):
        """udev takes new ones, even if they are as old as those that it has."""
        host = self.hosts[0]
        self.assertIn("modules.dep.bin", host.run("cat /proc/$(pidof systemd-udevd)/maps").out)
        host.run("cd /lib/modules/$(uname -r) || exit; for index in modules.*.bin; do "
                 "cp -p $index new && mv new $index || exit; done")
        host.reload_udev()

    def test_list(self):
        labs = {lab["lab"]: lab for lab in json.loads(run("list", "--json").stdout)}
        self.assertEqual([host["alive"] for host in labs[self.lab.name]["hosts"]], [True, True])
        self.assertIn(f"{self.lab.name}  2 of 2 hosts up\n", run("list").stdout)

    def test_status(self):
        told = status(self.lab.name)
        self.assertEqual([host["name"] for host in told["hosts"]], ["host1", "host2"])
        self.assertEqual([host["driver"] for host in told["hosts"]], ["tern", "tern"])
        self.assertGreater(told["wire"]["frames"], 0)


class PowerCut(Scenario):
    """A host of a lab that belongs to this process."""

    def command(self, *words):
        done = run("--lab", self.lab.name, *words)
        return done.returncode, done.stdout + done.stderr

    def alive(self):
        told = json.loads(self.command("status", "--json")[1])
        return [host["alive"] for host in told["hosts"]]

    def pingpong_again(self):
        self.lab.restart("host1")
        self.assertEqual(self.alive(), [True, True])
        self.pingpong("-n 20 -c")

    def test_kill(self):
        """The peer's QP hears nothing any more, and says so when its retries are spent."""
        victim, peer = self.hosts
        serving = victim.spawn(f"ib_write_bw -D 60 {self.verbs(victim)}")
        pair.await_listener(victim, pair.PERFTEST_PORT, serving)
        asking = peer.spawn(f"ib_write_bw -D 60 {self.verbs(peer)} {victim.ipv4}")
        self.await_traffic(peer, serving, asking)
        self.assertEqual(self.command("kill", "host1"), (0, ""))
        self.assertIn("status 12", asking.wait(check=False).out)  # transport retry counter exceeded
        serving.give_up()

        self.assertEqual(self.alive(), [False, True])
        self.assertIn("host1  down; ", self.command("status")[1])
        self.assertIn(f"{self.lab.name}  1 of 2 hosts up\n", run("list").stdout)
        for words in (["run", "host1", "--", "true"], ["run", "all", "--", "true"]):
            self.assertEqual(self.command(*words), (
                1, "lab: host1 is down; `scripts/lab restart host1` starts it anew\n"))
        code, said = self.command("restart", "host1")
        self.assertEqual((code, said.count("\n")), (1, 1))
        self.assertIn(f"belongs to process {os.getpid()}", said)
        self.pingpong_again()

    def test_restart_of_one_that_hangs(self):
        before = self.hosts[0].process
        os.kill(before.pid, signal.SIGSTOP)
        self.pingpong_again()
        self.assertFalse(before.alive())


class Changes(unittest.TestCase):
    """A lab that outlives the commands that change it, as a person's does."""

    @classmethod
    def setUpClass(cls):
        cls.name = f"{report.NAME}.{cls.__name__}"
        cls.addClassCleanup(run, "--lab", cls.name, "down")

    def lab(self, *words):
        done = run("--lab", self.name, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def hosts(self):
        """The ids of those that are up."""
        told = status(self.name)["hosts"]
        self.assertTrue(all(host["driver"] == "tern" for host in told), told)
        return {host["name"]: host["pid"] for host in told if host["alive"]}

    def assert_connected(self, server, client):
        # It listens as a child of the command.
        self.lab("serve", server, "--", "timeout", "600", "ibv_rc_pingpong", "-g", "3")
        self.assertIn("1000 iters", self.lab("run", client, "--", "ibv_rc_pingpong", "-g", "3",
                                             server))

    def test_changes(self):
        """Each command leaves the other hosts as they are."""
        like = ("--mem", Options.mem)  # for which there is a snapshot
        self.lab("up", "1", *like)
        first = self.hosts()
        adding = [subprocess.Popen([LAB, "--lab", self.name, "add", *like, "--cards", cards],
                                   stderr=subprocess.DEVNULL) for cards in "12"]
        self.assertEqual([command.wait() for command in adding], [0, 0])
        hosts = self.hosts()
        self.assertEqual(list(hosts), ["host1", "host2", "host3"])
        self.assertEqual(hosts["host1"], first["host1"])
        self.assert_connected("host1", "host3")
        cards = sorted(len(self.lab("run", host, "--", "ibv_devices").splitlines()) - 2
                       for host in hosts)
        self.assertEqual(cards, [1, 1, 2])

        self.lab("restart", "3")
        again = self.hosts()
        self.assertNotEqual(again.pop("host3"), hosts.pop("host3"))
        self.assertEqual(again, hosts)
        self.assert_connected("host3", "host2")

        self.lab("remove", "host1")
        self.assertEqual(list(self.hosts()), ["host2", "host3"])
        self.assertEqual(run("--lab", self.name, "run", "host1", "--", "true").stderr,
                         'lab: no host "host1"; there are host2, host3\n')
        self.lab("add", *like)
        self.assertEqual(list(self.hosts()), ["host1", "host2", "host3"])
        self.assert_connected("host2", "host1")


class OwnKernel(Scenario):
    """Hosts with the kernel of another stack of this Debian, or their own if there is one only."""

    @classmethod
    def setUpClass(cls):
        other = next((name for name in stack.ask("--list").split() if name != stack.ask()), "")
        made = subprocess.run([LAB.parent / "image"], stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, **({"TERN_STACK": other} if other else {})})
        cls.kernel = Image(made.stdout.strip())
        cls.IMAGE = {"kernel": cls.kernel.vmlinuz, "modules": cls.kernel.modules}
        super().setUpClass()

    def assert_kernel(self, host):
        version = self.kernel.kernel
        self.assertEqual(host.run("uname -r").out, f"{version}\n")
        self.assertEqual(host.run("modinfo -F vermagic tern rdma_rxe | cut -d ' ' -f 1").out,
                         f"{version}\n" * 2)

    def test_kernel(self):
        """Also after a restart, and of a host that comes later."""
        self.lab.restart("host2")
        (third,) = self.lab.add([Options()])
        self.addCleanup(self.lab.remove, third.name)
        for host in self.lab.hosts:
            self.assert_kernel(host)
        self.pingpong("-n 20 -c")
        self.pingpong("-n 20 -c", hosts=(third, self.hosts[1]))
        self.perftest("ib_write_bw", "-s 65536 -n 500")

    def test_refused(self):
        """A kernel that finds no disk, before it boots. Nothing of the lab is left."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / self.kernel.kernel
            shutil.copytree(self.kernel.modules, folder, ignore=shutil.ignore_patterns(
                "build", "source", "virtio_blk.ko*", "net", "fs", "sound", "gpu"))
            told = run("--lab", "never", "up", "--kernel", self.kernel.vmlinuz, "--modules", folder)
            self.assertEqual((told.returncode, told.stdout), (1, ""))
            self.assertEqual(told.stderr.splitlines()[-1], f"lab: {folder} has no virtio_blk, and "
                             "the kernel does not have it built in")
        self.assertIn("there is no lab", run("--lab", "never", "status").stderr)


if __name__ == "__main__":
    main()
