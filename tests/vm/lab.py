# SPDX-License-Identifier: GPL-2.0-or-later
"""What a person asks of the lab beside programs: a folder of this machine, the labs that are up."""

import json
import pathlib
import subprocess
import tempfile

from scenario import Options, Scenario, main

LAB = pathlib.Path(__file__).resolve().parents[2] / "scripts/lab"


def run(*words):
    return subprocess.run([LAB, *words], capture_output=True, text=True, check=False)


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

    def test_list(self):
        labs = {lab["lab"]: lab for lab in json.loads(run("list", "--json").stdout)}
        self.assertEqual([host["alive"] for host in labs[self.lab.name]["hosts"]], [True, True])
        self.assertIn(f"{self.lab.name}  2 of 2 hosts up\n", run("list").stdout)

    def test_status(self):
        told = json.loads(run("--lab", self.lab.name, "status", "--json").stdout)
        self.assertEqual([host["name"] for host in told["hosts"]], ["host1", "host2"])
        self.assertEqual([host["driver"] for host in told["hosts"]], ["tern", "tern"])
        self.assertGreater(told["wire"]["frames"], 0)


if __name__ == "__main__":
    main()
