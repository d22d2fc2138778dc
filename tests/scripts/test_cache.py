#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache: what is made once, what a failure leaves, and what is deleted."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import own_kernel, parts, snapshot  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.host import Options  # noqa: E402

MONTH = 31 * 24 * 3600
MAKERS = """
    good() { echo made >content; echo called >>"$TERN_CACHE/calls"; }
    bad() { echo half >content; echo "no such ingredient" >log; return 1; }
"""


class WithCache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)

    def cached(self, maker, *ingredients):
        call = " ".join(["cached", maker, maker, *ingredients])
        script = f"here={TOP}/scripts; . $here/cache.sh; {MAKERS} {call}"
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False,
                              env={**os.environ, "TERN_CACHE": str(self.cache)})

    def made(self, *ingredients):
        result = self.cached("good", *ingredients)
        self.assertEqual(result.returncode, 0, result.stderr)
        return pathlib.Path(result.stdout.strip())

    def folders(self):
        return {entry for entry in self.cache.iterdir() if entry.is_dir()}

    def last_used(self, folder, age):
        then = time.time() - age
        os.utime(folder, (then, then))


class Cache(WithCache):
    def test_the_same_ingredients_are_made_once(self):
        first, second, other = self.made("a"), self.made("a"), self.made("b")
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)
        self.assertEqual((first / "content").read_text(), "made\n")
        self.assertEqual((self.cache / "calls").read_text().count("called"), 2)

    def test_a_failure_is_told_and_leaves_nothing(self):
        result = self.cached("bad", "a")
        self.assertIn("no such ingredient", result.stderr)
        self.assertIn("could not make bad", result.stderr)
        self.assertEqual(self.folders(), set())

    def test_a_caller_that_tests_the_result_is_refused(self):
        """There the shell goes on behind a command of the maker that fails."""
        for maker in "good", "bad":
            result = self.cached(maker, "a || exit 3")
            self.assertEqual((result.returncode, result.stdout), (3, ""))
            self.assertIn("must not test the result", result.stderr)
        self.assertEqual(self.folders(), set())

    def test_a_debian_that_cannot_be_made(self):
        programs = self.cache / "programs"
        programs.mkdir()
        (programs / "mmdebstrap").write_text("#!/bin/sh\nexit 1\n")
        (programs / "mmdebstrap").chmod(0o755)
        for script in "scripts/root", "tests/packages/fresh-root":
            result = subprocess.run(
                [TOP / script], capture_output=True, text=True, check=False,
                env={**os.environ, "TERN_CACHE": str(self.cache), "TERN_STACK": "",
                     "PATH": f"{programs}:{os.environ['PATH']}"})
            self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
            self.assertIn("could not make", result.stderr)

    def test_what_is_not_used_any_more_is_deleted(self):
        unused, used = self.made("unused"), self.made("used")
        for folder in unused, used:
            self.last_used(folder, MONTH)
        self.made("used")
        self.assertEqual(self.folders(), {unused, used}, "only making something deletes")
        new = self.made("new")
        self.assertEqual(self.folders(), {used, new})

    def test_nothing_else_is_deleted(self):
        for name in "fuzz", "somebody-else":
            (self.cache / name).mkdir()
            self.last_used(self.cache / name, MONTH)
        new = self.made("new")
        self.assertEqual(self.folders(), {self.cache / "fuzz", self.cache / "somebody-else", new})


class Killed(WithCache):
    """What the lab was making when it was killed has a name by which the cache deletes it."""

    def half_made(self, make, module, function):
        """Returns the folders that are there while make() calls the function."""
        found = set()

        def look(*_):
            found.update(self.folders())
            raise LabError("that is enough")

        with mock.patch.dict(os.environ, TERN_CACHE=str(self.cache)), \
                mock.patch.object(module, "_key", lambda *_: "0123456789abcdef"), \
                mock.patch.object(module, function, look), self.assertRaises(LabError):
            make()
        return found

    def test_deleted(self):
        image = types.SimpleNamespace(folder=self.cache)
        with mock.patch.object(own_kernel, "version_of", lambda _: "6.1"):
            folders = [self.half_made(lambda: parts.archive(image), parts, "_pack"),
                       self.half_made(lambda: own_kernel.image_folder(self.cache, "bzImage"),
                                      own_kernel, "_make"),
                       self.half_made(lambda: snapshot.Snapshot.get(image, Options()), snapshot,
                                      "_boot_and_save")]
        for folder, in folders:
            folder.mkdir()
            self.last_used(folder, MONTH)
        new = self.made("new")
        self.assertEqual(self.folders(), {new})


# What the lab takes for its folders, and what a program that it starts elsewhere does.
FOLDERS = """
import os, subprocess
from ternlab import paths
os.chdir("/")
print(paths.cache(), paths.runtime("lab"), sep="\\n", flush=True)
subprocess.run(["sh", "-c", 'echo "$TERN_CACHE"'], check=True)
"""


class Relative(unittest.TestCase):
    """TERN_CACHE names the same folder in whatever folder it is read."""

    def test_lab(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ["/usr/bin/python3", "-B", "-c", FOLDERS], cwd=folder, check=True, text=True,
                stdout=subprocess.PIPE, env={
                    **os.environ, "PYTHONPATH": str(TOP / "scripts"), "TERN_CACHE": "my cache",
                    "XDG_RUNTIME_DIR": "run"})
        cache, runtime, child = done.stdout.splitlines()
        self.assertEqual((cache, child), (f"{folder}/my cache",) * 2)
        self.assertTrue(runtime.startswith(f"{folder}/run/tern-"))

    def test_make(self):
        for given, taken in (("my cache", f"{TOP}/my cache"), ("/my cache", "/my cache"), ("", "")):
            told = [subprocess.run(
                ["make", "--eval", 'told: ; @echo "$$TERN_CACHE"', "told", *words], cwd=TOP,
                text=True, check=True, stdout=subprocess.PIPE, env={
                    **os.environ, "TERN_STACK": "", "MAKEFLAGS": "", "MAKELEVEL": "0",
                    **environment}).stdout
                for words, environment in (([], {"TERN_CACHE": given}),
                                           ([f"TERN_CACHE={given}"], {}))]
            self.assertEqual(told, [f"{taken}\n"] * 2)


if __name__ == "__main__":
    unittest.main()
