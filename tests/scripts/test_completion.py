#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What bash offers for the beginning of a command line of the lab."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
# As bash does when somebody presses the tabulator key at the end of the line.
PRESS = """
    . "$TOP/scripts/completion.bash"
    COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
    word=${1%% *}
    # It looks for the word, and then for what follows the last slash.
    complete -p "$word" >/dev/null 2>&1 || complete -p "${word##*/}" >/dev/null || exit
    _python_argcomplete "$word"
    printf '%s\\n' "${COMPREPLY[@]}" """


class Completion(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        # So that the labs are those of the test, and python3 is Debian's.
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": scratch.name,
                            "PATH": "/usr/bin:/bin", "TERN_LAB": "lab", "TERN_STACK": "",
                            "TOP": str(TOP)}

    def offered(self, line, folder=TOP):
        ran = subprocess.run(["/bin/bash", "-c", PRESS, "bash", line], cwd=folder, text=True,
                             capture_output=True, check=True, env=self.environment)
        return sorted(word.strip() for word in ran.stdout.splitlines())

    def remember_lab(self, name, hosts):
        """Writes what a lab that was brought up leaves for `scripts/lab`."""
        find = "from ternlab import paths; import sys; print(paths.runtime(sys.argv[1]))"
        told = subprocess.run(["/usr/bin/python3", "-B", "-c", find, name], cwd=TOP / "scripts",
                              stdout=subprocess.PIPE, text=True, check=True, env=self.environment)
        folder = pathlib.Path(told.stdout.strip())
        folder.mkdir(parents=True)
        process = {"name": "ended", "pid": 1, "birth": None}
        (folder / "lab.json").write_text(json.dumps({
            "image": "/nowhere", "wire": process,
            "hosts": [{"index": index, "port": None, "process": process, "options": {}}
                      for index in range(1, hosts + 1)]}), encoding="ascii")

    def test_commands(self):
        self.assertEqual(self.offered("scripts/lab c"),
                         ["cable", "capture", "console", "copy", "cp"])

    def test_options_of_a_command(self):
        self.assertEqual(self.offered("scripts/lab up --nic"), ["--nic", "--nic-options"])

    def test_choices(self):
        self.assertEqual(self.offered("scripts/lab up --wire s"), ["shm", "stream"])

    def test_serve(self):
        self.remember_lab("lab", 2)
        self.assertEqual(self.offered("scripts/lab serve h"), ["host1", "host2"])

    def test_other_ways_to_call_it(self):
        """From the folder of scripts, or by PATH."""
        self.environment["PATH"] = f"{TOP / 'scripts'}:{self.environment['PATH']}"
        for word in ("scripts/lab", "./scripts/lab", "lab", "./lab"):
            with self.subTest(word):
                folder = TOP / "scripts" if word == "./lab" else TOP
                self.assertEqual(self.offered(f"{word} up --nic", folder),
                                 ["--nic", "--nic-options"])

    def test_installed(self):
        """A program named lab is none of this then."""
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(TOP / "scripts/completion.bash", f"{folder}/tern-lab")
            said = subprocess.run(["/bin/bash", "-c", f". {path}; complete -p"], text=True,
                                  capture_output=True, check=True, env=self.environment)
        self.assertEqual([line.split()[-1] for line in said.stdout.splitlines()], ["tern-lab"])

    def test_hosts_of_the_lab(self):
        self.remember_lab("lab", 2)
        self.remember_lab("other", 3)
        self.assertEqual(self.offered("scripts/lab shell h"), ["host1", "host2"])
        self.assertEqual(self.offered("scripts/lab --lab other shell h"),
                         ["host1", "host2", "host3"])

    def test_labs(self):
        self.remember_lab("lab", 1)
        self.remember_lab("other", 1)
        self.assertEqual(self.offered("scripts/lab --lab "), ["lab", "other"])

    def test_no_lab(self):
        self.assertEqual(self.offered("scripts/lab shell h"), [""])


if __name__ == "__main__":
    unittest.main()
