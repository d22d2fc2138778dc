#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of stacks, and what the scripts say of a stack or a machine that is not as they need
it: one line, an exit code other than 0, and nothing half done."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import machine, parts  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.host import Options  # noqa: E402

UNAVAILABLE = 77  # status of scripts, if a stack cannot be had here
COLUMNS = ("suite", "arch", "kernel", "kernel-suite", "headers", "qemu", "rdma-core", "front-end")


def run(*command, **environment):
    # As from a shell, also within `make test`: a make within make says more.
    shell = {"TERN_STACK": "", "MAKEFLAGS": "", "MAKELEVEL": ""}
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False,
                          env={**os.environ, **shell, **environment})


def table():
    lines = (TOP / "scripts/stacks.txt").read_text(encoding="ascii").splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def is_debug(row):
    return row[5].startswith("linux-source-")


def system(row):
    """Suite, architecture and the suite of the kernel."""
    return row[1], row[2], row[4]


def this_debian():
    return run("sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"').stdout.strip()


class Table(unittest.TestCase):
    def test_every_column_of_every_row(self):
        for name, *cells in table():
            for column, cell in zip(COLUMNS, cells, strict=True):
                self.assertEqual(run("scripts/stack", column, TERN_STACK=name).stdout, f"{cell}\n")

    def test_names_are_unique(self):
        names = [row[0] for row in table()]
        self.assertEqual(len(names), len(set(names)))

    def test_default_is_the_first_of_this_debian(self):
        ours = [row for row in table() if system(row) == (this_debian(), "amd64", this_debian())]
        self.assertEqual(run("scripts/stack").stdout, f"{ours[0][0]}\n")
        for option, debug in (("--list", False), ("--debug", True)):
            self.assertEqual(run("scripts/stack", option).stdout.split(),
                             [row[0] for row in ours if is_debug(row) == debug])
        self.assertEqual(run("scripts/stack", "--foreign").stdout, "")

    def test_others_are_the_default_of_each_other_system(self):
        others = run("scripts/stack", "--others").stdout.split()
        systems = [system(row) for row in table() if row[0] in others]
        self.assertEqual(sorted(systems), sorted({system(row) for row in table()}
                                                 - {(this_debian(), "amd64", this_debian())}))
        for name, (suite, arch, kernel_suite) in zip(others, systems):
            self.assertEqual(run("scripts/stack", TERN_STACK=name).stdout, f"{name}\n")
            expected = [suite] + [arch] * (arch != "amd64")
            expected += [kernel_suite] * (kernel_suite != suite)
            foreign = run("scripts/stack", "--foreign", TERN_STACK=name).stdout
            self.assertEqual(foreign, "-".join(expected) + "\n")

    def test_the_newest(self):
        """It has a smoke test, unless it is of this machine's system."""
        name = run("scripts/stack", "--newest").stdout.strip()
        rows = {row[0]: row for row in table() if not is_debug(row)}
        self.assertEqual(rows[name][3], max((row[3] for row in rows.values()),
                                            key=lambda series: list(map(int, series.split(".")))))
        self.assertEqual(run("scripts/stack", "--newest", TERN_STACK=name).stdout, "")

    def test_a_debug_kernel_has_a_stock_one_of_its_series(self):
        rows = {row[0]: row for row in table()}
        for name, row in rows.items():
            stock = rows[run("scripts/stack", "stock", TERN_STACK=name).stdout.strip()]
            self.assertFalse(is_debug(stock))
            self.assertEqual(row[1:5], stock[1:5])

    def test_each_architecture_has_a_compiler_and_a_machine(self):
        for name, _, arch, *_ in table():
            triplet = run("scripts/stack", "triplet", TERN_STACK=name).stdout
            self.assertRegex(triplet, "^[a-z0-9_]+-linux-gnu\n$")
            self.assertIn(triplet.partition("-")[0], machine.of(Options(arch=arch)).qemu)


class WithPrograms(unittest.TestCase):
    """Tests that put other programs in place of some."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def instead_of(self, program, script):
        """PATH with another program of that name in front."""
        path = self.scratch / program
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        path.chmod(0o755)
        return f"{self.scratch}:{os.environ['PATH']}"

    def with_packages_of(self, stack, qemu=None, kernel=None):
        """PATH with a dpkg-query that tells of the stack's packages, but for these versions."""
        row = dict(zip(COLUMNS, next(row[1:] for row in table() if row[0] == stack)))
        return self.instead_of("dpkg-query", f"""case "$*" in
            *qemu-system-x86) echo '1:{qemu or row["qemu"]}.0+ds-1' ;;
            *libibverbs-dev) echo '{row["rdma-core"]}.0-2' ;;
            *{row["headers"]}) echo linux-headers-{kernel or row["kernel"]}.4-amd64 ;;
            *) exit 1 ;;
            esac""")

    def checkout(self):
        """A checkout whose root folder of another Debian is this machine's own."""
        checkout = self.scratch / "checkout"
        (checkout / "build").mkdir(parents=True)
        (checkout / "Makefile").touch()  # or it would be an installation
        shutil.copytree(TOP / "scripts", checkout / "scripts",
                        ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(TOP / "tests/vm", checkout / "tests/vm",
                        ignore=shutil.ignore_patterns("__pycache__"))
        (checkout / "scripts/root").write_text("#!/bin/sh\necho /\n", encoding="ascii")
        return checkout


class Machines(WithPrograms):
    """What scripts/stack takes a machine for, by two files that each has."""

    def on(self, os_release, debian_version):
        """The exit code of scripts/stack on such a machine, and what it says."""
        (self.scratch / "os-release").write_text(os_release, encoding="ascii")
        (self.scratch / "debian_version").write_text(debian_version, encoding="ascii")
        ran = run("unshare", "--mount", "sh", "-euc", f"""
            for file in os-release debian_version; do
                mount --bind {self.scratch}/$file /etc/$file
            done
            scripts/stack""")
        return ran.returncode, ran.stdout or ran.stderr

    def test_debian(self):
        for codename, version, stack in (
                ("bookworm", "12.11", "bookworm"), ("trixie", "13.1", "trixie"),
                ("forky", "forky/sid", "sid")):
            self.assertEqual(self.on(f"ID=debian\nVERSION_CODENAME={codename}\n", f"{version}\n"),
                             (0, f"{stack}\n"))

    def test_derived_from_debian(self):
        """Such a system is not sid, even if it says which Debian it was made from."""
        for name, codename in (("ubuntu", "noble"), ("linuxmint", "wilma")):
            code, said = self.on(f"ID={name}\nID_LIKE=debian\nVERSION_CODENAME={codename}\n",
                                 "trixie/sid\n")
            self.assertEqual(code, 1)
            self.assertIn(f"none is of this machine's system, {codename}: ", said)


class Packages(WithPrograms):
    def test_what_else_is_in_the_folder(self):
        """It stays. Packages of an older version go."""
        if run("scripts/stack", "front-end").stdout != "preloaded\n":
            self.skipTest("there are no packages for this machine's default stack")
        folder = self.scratch / "my folder"
        folder.mkdir()
        for name in ("notes", "other_1_amd64.deb", "tern-lab_0_amd64.deb", "tern-doc_0_all.deb",
                     "tern-lab-other_1_all.deb"):
            (folder / name).touch()
        self.instead_of("lintian", "")
        path = self.instead_of("dpkg-buildpackage", "cd .. && touch tern-lab_1_amd64.deb "
                               "tern-tools-dbgsym_1_amd64.deb it.changes it.buildinfo")
        ran = run("scripts/packages", folder, PATH=path)
        self.assertEqual((ran.returncode, ran.stdout), (0, f"{folder}/tern-lab_1_amd64.deb\n"),
                         ran.stderr)
        self.assertEqual(sorted(os.listdir(folder)), [
            "notes", "other_1_amd64.deb", "tern-lab-other_1_all.deb", "tern-lab_1_amd64.deb"])
        self.assertFalse(folder.with_name("my folder.new").exists())


class KernelSource(WithPrograms):
    def asked(self, script, stack):
        """The sources of packages that the script has apt-get look in, which has nothing."""
        asked = self.scratch / "asked"
        asked.unlink(missing_ok=True)
        path = self.instead_of("apt-get", f"""
            [ -z "${{APT_CONFIG-}}" ] || cat "${{APT_CONFIG%/*}}/sources.list" >{asked}
            exit 1""")
        ran = run(script, TERN_STACK=stack, PATH=path, TERN_CACHE=str(self.scratch / "cache"))
        self.assertNotEqual(ran.returncode, 0)
        return asked.read_text(encoding="ascii") if asked.exists() else None

    def test_suite(self):
        """The archive of the kernel's own suite is asked, if that is not this machine's."""
        foreign = next(row for row in table() if row[4] not in (row[1], this_debian()))
        for script in ("scripts/in-tree", "scripts/kernel-source"):
            with self.subTest(script):
                self.assertRegex(self.asked(script, foreign[0]), f" {foreign[4]} main\n$")
                self.assertIsNone(self.asked(script, ""))


class Checks(WithPrograms):
    """scripts/checked-module and scripts/in-tree, with a kbuild that says what is given. Newer
    kernels build without sparse if it is too old for them, or if their headers lack what tries
    it."""

    REFUSAL = "Makefile:1216: C=2 specified, but sparse is not available or not up to date\n"
    MISSING = "make[1]: /usr/src/scripts/checker-valid.sh: No such file or directory\n"
    WARNING = "kernel/qp.c:1:1: warning: unused variable 'x' [-Wunused-variable]\n"

    def setUp(self):
        super().setUp()
        self.scripts = self.checkout() / "scripts"
        self.said = self.scratch / "said"
        self.replace("build-module", f"[ $1 = --ingredients ] || cat {self.said}")
        self.replace("kernel-patch", "true")
        # The package of the kernel's source, of which a make says the same.
        tree = self.scratch / "tree"
        (tree / "scripts").mkdir(parents=True)
        (tree / "Makefile").write_text(f"""
x86_64_defconfig olddefconfig modules_prepare:
drivers/infiniband/hw/tern/:
\tmkdir -p $@ && echo >$@/tern.o && cat {self.said}
""", encoding="ascii")
        for name in ("config", "checkpatch.pl"):
            (tree / "scripts" / name).write_text("#!/bin/sh\n", encoding="ascii")
            (tree / "scripts" / name).chmod(0o755)
        (tree / ".config").write_text("CONFIG_INFINIBAND_TERN=m\n", encoding="ascii")
        self.instead_of("apt-cache", "echo Version: 1")
        self.instead_of("apt-get", f"""cd {self.scratch} && tar -cJf linux.tar.xz tree
            cd "$OLDPWD" && touch "$3"_1.deb""")
        self.path = self.instead_of("dpkg-deb", f"tar -C {self.scratch} -c ./linux.tar.xz")

    def replace(self, script, text):
        (self.scripts / script).write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")

    def check(self, script, said):
        """Whether the script is content when kbuild says this, and its lines about sparse."""
        self.said.write_text(said, encoding="ascii")
        ran = run(self.scripts / script, PATH=self.path, TERN_CACHE=str(self.scratch / "cache"))
        return ran.returncode == 0, [line for line in ran.stderr.splitlines() if "sparse" in line]

    def test_sparse_that_runs(self):
        for script in ("checked-module", "in-tree"):
            with self.subTest(script):
                self.assertEqual(self.check(script, "kernel/qp.c:1:1: warning: wrong type\n")[0],
                                 False)
                self.assertEqual(self.check(script, ""), (True, []))

    def test_sparse_that_does_not_run(self):
        """This is said in one line, also when the result comes from the cache. The compiler's
        warnings count as ever."""
        for script in ("checked-module", "in-tree"):
            for refusal, reason in (
                    (self.REFUSAL, " is too old for this kernel"),
                    (self.MISSING + self.REFUSAL, " lack scripts/checker-valid.sh")):
                with self.subTest(script, reason=reason):
                    shutil.rmtree(self.scratch / "cache", ignore_errors=True)
                    self.assertEqual(self.check(script, self.WARNING + refusal)[0], False)
                    for _ in range(2):
                        content, lines = self.check(script, refusal)
                        self.assertTrue(content)
                        self.assertRegex("\n".join(lines),
                                         f"^{script}: sparse did not run.*{reason}$")


class BadInput(WithPrograms):
    def refused(self, expected, *command, **environment):
        ran = run(*command, **environment)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(expected, ran.stderr)
        self.assertEqual(ran.stdout + ran.stderr, ran.stderr.splitlines()[0] + "\n")

    def test_no_such_stack(self):
        for command in (("scripts/stack",), ("scripts/guest-kernel",), ("scripts/image",),
                        ("scripts/on-stack", "true"), ("scripts/setup", "--list"),
                        ("scripts/lab", "up"), ("make", "run"),
                        ("/usr/bin/python3", "-B", "tests/vm/verbs.py")):
            with self.subTest(command):
                self.refused("there is no stack woody; there are: bookworm ", *command,
                             TERN_STACK="woody")

    def test_commands_without_a_stack(self):
        """They work without one, and do not enter that of another Debian."""
        other = run("scripts/stack", "--others").stdout.split()[0]
        for name in ("woody", other):
            environment = {"TERN_STACK": name, "XDG_RUNTIME_DIR": str(self.scratch),
                           # A Debian would be made here, and cannot.
                           "TERN_CACHE": str(self.scratch / "cache"),
                           "PATH": self.instead_of("mmdebstrap", "exit 1")}
            listed = run("scripts/lab", "list", **environment)
            self.assertEqual((listed.returncode, listed.stdout, listed.stderr), (0, "", ""))
            for words in (["down"], ["copy", "x", "host1:"], ["cp", "x", "host1:"]):
                self.refused('there is no lab "no-lab" here', "scripts/lab", "--lab", "no-lab",
                             *words, **environment)
            self.refused("No such file or directory", "scripts/lab", "ladder",
                         self.scratch / "none.pcap", **environment)

    def test_headers_of_no_kernel(self):
        path = self.instead_of("dpkg-query", "exit 1")
        self.refused("headers-amd64 is not installed", "scripts/guest-kernel", PATH=path)

    def test_headers_of_another_kernel(self):
        path = self.instead_of("dpkg-query", "echo 'linux-headers-9.9.1-amd64 (= 9.9.1-1)'")
        self.refused("is of 9.9.1-amd64", "scripts/guest-kernel", PATH=path)

    def test_no_module_for_the_hosts(self):
        """They would wait for their cards."""
        image = types.SimpleNamespace(kernel="9.9.1-amd64", has_packages=False,
                                      has_own_kernel=False, has_module=lambda name: False)
        with self.assertRaisesRegex(LabError, "9.9.1-amd64/tern.ko is not there; `make hosts`"):
            parts.require_module(image)

    def test_another_qemu(self):
        real = shutil.which("dpkg-query")
        path = self.instead_of("dpkg-query", f"""case "$*" in
            *qemu-system-x86) echo 1:9.9+dfsg-1 ;;
            *) {real} "$@" ;;
            esac""")
        self.refused(", but there is 9.9+dfsg-1", "scripts/setup", PATH=path)

    def test_module_for_a_kernel_without_headers(self):
        folder = self.scratch / "module"
        self.refused("headers of kernel 9.9.1 are not installed",
                     "scripts/build-module", "9.9.1", folder)
        self.assertFalse(folder.exists())

    def test_a_kdir_that_is_no_kernel_tree(self):
        for folder in ("/nonexistent", self.scratch):
            self.refused(f"{folder} is neither a kernel tree ", "make", "module",
                         f"TERN_KDIR={folder}")

    def test_nothing_of_another_debian_is_installed(self):
        other = run("scripts/stack", "--others").stdout.split()[0]
        self.refused("would be installed here", "make", "install", f"DESTDIR={self.scratch}",
                     TERN_STACK=other)

    def test_no_device_for_a_qemu_with_vfio_user(self):
        """Nothing asks for its headers, and nothing is packed for it."""
        for name in (row[0] for row in table() if row[-1] == "vfio-user"):
            self.assertEqual(run("scripts/qemu-headers", TERN_STACK=name).stdout, "OFF\n")
            self.refused(f"there are none for the stack {name}", "scripts/packages", self.scratch,
                         TERN_STACK=name)

    def test_no_packages_for_another_architecture(self):
        for name in (row[0] for row in table() if row[2] != "amd64"):
            self.refused(f"there are none for the stack {name}", "scripts/packages", self.scratch,
                         TERN_STACK=name)

    def test_a_package_that_is_not_there(self):
        self.refused("there is no package nothing.deb",
                     "scripts/lab", "--lab", "no-lab", "up", "--package", "nothing.deb",
                     XDG_RUNTIME_DIR=str(self.scratch))

    def test_files_of_users_are_the_same_on_another_debian(self):
        """Those below the home and the folder that the command is called from. This machine's own
        root folder stands for the other system's; it lacks what is mounted, as here."""
        scripts = self.checkout() / "scripts"
        other = run("scripts/stack", "--others").stdout.split()[0]
        with tempfile.TemporaryDirectory(dir="/var/tmp") as home, \
                tempfile.TemporaryDirectory(dir="/var/tmp") as here:
            done = run("unshare", "--mount", "sh", "-euc", f"""
                mount -t tmpfs tmpfs {here}
                mkdir {here}/below
                cd {here}/below
                {scripts}/on-stack sh -c 'touch "$HOME/kept" kept /usr/lost'
                echo $HOME/* *""", TERN_STACK=other, HOME=home,
                       PATH=self.with_packages_of(other))
            self.assertEqual((done.stdout, done.stderr), (f"{home}/kept kept\n", ""))
        self.assertFalse(os.path.exists("/usr/lost"))

    def test_programs_of_users_are_not_those_of_another_debian(self):
        """Such as a python3 below the home, which has other packages."""
        other = run("scripts/stack", "--others").stdout.split()[0]
        done = run(self.checkout() / "scripts/on-stack", "sh", "-c", 'echo "$PATH"',
                   TERN_STACK=other, PATH=self.with_packages_of(other))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([folder for folder in done.stdout.strip().split(":")
                          if not re.fullmatch("(/usr(/local)?)?/s?bin", folder)], [])

    def test_another_debian_takes_root(self):
        other = run("scripts/stack", "--others").stdout.split()[0]
        path = self.instead_of("id", "echo 1000")
        self.refused("takes root", "scripts/on-stack", "true", TERN_STACK=other, PATH=path)


class Unavailable(WithPrograms):
    """What this machine or Debian's archive does not have is no failure: scripts end with a status
    of its own, and say what is missing."""

    def setUp(self):
        super().setUp()
        self.other = run("scripts/stack", "--others").stdout.split()[0]
        self.newest = run("scripts/stack", "--newest").stdout.strip()
        self.reason = self.scratch / "reason"

    def run_for_reason(self, *command, **environment):
        """The status, and the reason if there is one."""
        self.reason.unlink(missing_ok=True)
        ran = run(*command, TERN_REASON=str(self.reason), TERN_CACHE=str(self.scratch / "cache"),
                  **environment)
        if not self.reason.exists():
            return ran.returncode, None
        reason = self.reason.read_text(encoding="utf-8")
        self.assertIn(reason, ran.stderr)
        return ran.returncode, reason

    def test_other_versions_than_the_row_says(self):
        """The command does not run, which would look for its Debian in there again."""
        made = self.scratch / "made"
        command = (self.checkout() / "scripts/on-stack", "touch", made)
        for wrong in ({"qemu": "99.9"}, {"kernel": "99.9"}, {"qemu": "99.9", "kernel": "98.8"}):
            with self.subTest(wrong):
                status, reason = self.run_for_reason(
                    *command, TERN_STACK=self.newest,
                    PATH=self.with_packages_of(self.newest, **wrong))
                self.assertEqual(status, UNAVAILABLE)
                self.assertRegex(reason, f"^stacks.txt says of the stack {self.newest}: ")
                for version in wrong.values():
                    self.assertIn(f", but there is {version}.", reason)
                self.assertEqual(reason.count("but there is"), len(wrong))
                self.assertFalse(made.exists())
        self.assertEqual(self.run_for_reason(*command, TERN_STACK=self.newest,
                                             PATH=self.with_packages_of(self.newest)), (0, None))
        self.assertTrue(made.exists())

    def test_a_machine_without_root(self):
        path = self.instead_of("id", "echo 1000")
        status, reason = self.run_for_reason("scripts/on-stack", "true", TERN_STACK=self.other,
                                             PATH=path)
        self.assertEqual(status, UNAVAILABLE)
        self.assertIn("takes root", reason)

    def test_packages_that_the_archive_lacks(self):
        for command, stack, refusal in (
                ("scripts/root", self.other, "E: Unable to locate package fio"),
                ("scripts/root", self.other,
                 "E: Unable to correct problems, you have held broken packages."),
                ("scripts/image", "", "E: Failed to fetch http://x  404")):
            with self.subTest(command, refusal=refusal):
                path = self.instead_of("mmdebstrap", f"echo '{refusal}'; exit 25")
                status, reason = self.run_for_reason(command, TERN_STACK=stack, PATH=path)
                self.assertEqual(status, UNAVAILABLE)
                self.assertIn(refusal, reason)

    def test_other_failures(self):
        for command, stack in (("scripts/root", self.other), ("scripts/image", "")):
            with self.subTest(command):
                path = self.instead_of("mmdebstrap", "echo 'E: setup failed: hook'; exit 25")
                self.assertEqual(self.run_for_reason(command, TERN_STACK=stack, PATH=path),
                                 (1, None))

    def prepare(self, checkout, on_stack, *options):
        """scripts/newest where on-stack does this."""
        (checkout / "scripts/on-stack").write_text(f"#!/bin/sh\n{on_stack}\n", encoding="ascii")
        return run(checkout / "scripts/newest", *options)

    def test_the_smoke_test_is_skipped(self):
        checkout = self.checkout()
        done = self.prepare(checkout, 'echo "no such kernel" >"$TERN_REASON"; exit 77')
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"vm.smoke.{self.newest} will not run: no such kernel", done.stderr)
        smoke = run("/usr/bin/python3", "-B", checkout / "tests/vm/smoke.py",
                    TERN_STACK=self.newest)
        self.assertEqual((smoke.returncode, smoke.stdout), (UNAVAILABLE, "no such kernel\n"))

    def test_what_the_cache_lacks(self):
        """Neither a Debian nor an image is made, if this takes what the cache has."""
        path = self.instead_of("mmdebstrap", f"touch {self.scratch}/made; exit 1")
        for command, stack in (("scripts/root", self.other), ("scripts/image", "")):
            with self.subTest(command):
                status, reason = self.run_for_reason(command, TERN_STACK=stack, PATH=path,
                                                     TERN_CACHE_ONLY="1")
                self.assertEqual(status, UNAVAILABLE)
                self.assertRegex(reason, "^(root|image)-.* is not in the cache\n$")
        self.assertFalse((self.scratch / "made").exists())

    def test_what_the_cache_has(self):
        """Only the image has to be in the cache: the rest depends on what is tested."""
        checkout = self.checkout()
        on_stack = f'echo "$1 ${{TERN_CACHE_ONLY-}}" >>{self.scratch}/called'
        for options, only in ((), ""), (("--cached",), "1"):
            (self.scratch / "called").write_text("", encoding="ascii")
            self.assertEqual(self.prepare(checkout, on_stack, *options).returncode, 0)
            self.assertEqual((self.scratch / "called").read_text(encoding="ascii").splitlines(),
                             [f"scripts/image {only}", "make ", "scripts/checked-module "])

    def test_the_smoke_test_is_not_skipped(self):
        """Whatever else goes wrong, and also if another command has that very status."""
        checkout = self.checkout()
        unavailable = checkout / "build/newest-unavailable"
        for on_stack, status in (
                ("exit 1", 1), ("[ $1 = scripts/image ] || exit 2", 2),
                ("[ $1 = scripts/image ] || exit 77", 77),
                ("[ $1 != scripts/checked-module ] || exit 1", 1), ("true", 0)):
            with self.subTest(on_stack):
                unavailable.touch()  # of an earlier time
                self.assertEqual(self.prepare(checkout, on_stack).returncode, status)
                self.assertFalse(unavailable.exists())

    def test_the_suite_lists_what_was_skipped(self):
        (self.scratch / "CTestTestfile.cmake").write_text("""
            foreach(status 0 77)
              add_test(vm.${status} /bin/sh -c "echo because of ${status}; exit ${status}")
              set_tests_properties(vm.${status} PROPERTIES SKIP_RETURN_CODE 77 LABELS vm)
            endforeach()""", encoding="ascii")
        loader = importlib.machinery.SourceFileLoader("suite", str(TOP / "scripts/suite"))
        suite = importlib.util.module_from_spec(importlib.util.spec_from_loader("suite", loader))
        loader.exec_module(suite)
        said = io.StringIO()
        with mock.patch.multiple(suite, TESTS=self.scratch, COSTS=self.scratch / "costs"), \
                contextlib.redirect_stdout(said):
            self.assertEqual(suite.run(["vm"], {}), 0)
        self.assertRegex(said.getvalue(),
                         "\nsuite: NOT RUN: vm.77: because of 77\nsuite: vm [0-9]+ s\n$")


if __name__ == "__main__":
    unittest.main()
