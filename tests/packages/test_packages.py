#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Installs the packages of $TERN_STACK in a bare Debian, uses what they install, and purges them.

They have to be built: `make packages`. The Debian is a folder from the cache, under an overlay
that is gone when the test has ended. Needs root.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = TOP / "scripts"
INSIDE = "TERN_MOUNTS_OF_OUR_OWN"
# What apt, dpkg, DKMS and the C library remember, whatever is installed, and the lab's cache and
# logs, which are the user's and no package may delete.
MEMORY = ("./var/lib/dpkg", "./var/lib/apt", "./var/cache", "./var/log", "./etc/ld.so.cache",
          "./tmp", "./root/.cache", "./root/.local/state")


def ask(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def stack(*words, **environment):
    return subprocess.run([SCRIPTS / "stack", *words], env={**os.environ, **environment},
                          stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def folder():
    foreign = stack("--foreign")
    return TOP / "build" / foreign / "packages" if foreign else TOP / "build/packages"


class Root:
    """A bare Debian whose changes vanish."""

    def __init__(self, base):
        self.path = pathlib.Path(base)

    @classmethod
    def mount(cls):
        base = ask(TOP / "tests/packages/fresh-root")
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="tern-packages."))
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", scratch], check=True)
        for name in ("upper", "work", "all"):
            (scratch / name).mkdir()
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={base},"
                        f"upperdir={scratch}/upper,workdir={scratch}/work", scratch / "all"],
                       check=True)
        root = cls(scratch / "all")
        cache = ask("sh", "-c", f'here={SCRIPTS}; . "$here/cache.sh"; mkdir -p "$TERN_CACHE"; '
                    'echo "$TERN_CACHE"')
        for outer, inner in (("/dev", "dev"), ("/proc", "proc"), ("/sys", "sys"),
                             (cache, "root/.cache/tern"), (folder(), "packages")):
            (root.path / inner).mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--rbind", outer, root.path / inner], check=True)
        for name in ("resolv.conf", "hosts"):
            (root.path / "etc" / name).write_bytes(pathlib.Path("/etc", name).read_bytes())
        return root

    def unmount(self):
        scratch = self.path.parent
        subprocess.run(["umount", "--recursive", "--lazy", scratch], check=True)
        scratch.rmdir()

    def command(self, line):
        # With INITRD=No kernels come without an initrd, which takes minutes.
        return ["chroot", self.path, "/usr/bin/env", "-i", "HOME=/root", "LC_ALL=C.UTF-8",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "INITRD=No",
                "sh", "-euc", line]

    def run(self, line):
        """A line for its shell: what it prints, of both kinds."""
        ran = subprocess.run(self.command(line), stdin=subprocess.DEVNULL, text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if ran.returncode:
            raise AssertionError(f"`{line}` failed with {ran.returncode}:\n{ran.stdout[-8000:]}")
        return ran.stdout.strip()

    def files(self):
        found = self.run("find . -xdev ! -type d").splitlines()
        return {path for path in found if not path.startswith(MEMORY)}


class Packages(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.root = Root.mount()
        self.addCleanup(self.root.unmount)
        self.names = sorted(path.name.partition("_")[0] for path in folder().glob("*.deb"))

    def install_dependencies(self):
        """By their names in the packages alone."""
        self.root.run("apt-get -q update")
        depends = {word.strip() for path in folder().glob("*.deb")
                   for word in ask("dpkg-deb", "-f", path, "Depends").split(",")}
        wanted = ", ".join(sorted(one for one in depends - {""}
                                  if one.split()[0] not in self.names))
        self.root.run(f"apt-get -q -y --no-install-recommends satisfy '{wanted}'")

    def installed(self):
        return set(self.root.run("dpkg-query -W -f '${Package}\\n'").splitlines())

    def modules(self):
        """The kernels that have tern.ko."""
        found = self.root.run("find /lib/modules/*/updates -name 'tern.ko*' 2>/dev/null || true")
        return sorted(path.split("/")[3] for path in found.splitlines())

    def test_life(self):
        self.install_dependencies()
        before = self.root.files()
        self.root.run("apt-get -q -y --no-install-recommends install /packages/*.deb")
        self.check_module()
        self.check_provider()
        self.check_card()
        self.check_completion()
        self.assertIn("there is no lab", self.root.run("tern-lab status 2>&1 || true"))
        self.check_hosts()
        self.check_hosts("tern-dkms", "libibverbs-tern")
        self.root.run(f"apt-get -q -y purge {' '.join(self.names)}")
        # depmod's tables stay where the kernel itself is not installed.
        left = {path for path in self.root.files() - before if "/modules." not in path}
        self.assertEqual(left, set())

    def check_module(self):
        headers = stack("headers")
        kernels = self.modules()
        self.assertEqual(len(kernels), 1, "one kernel's headers are installed")
        self.assertIn("Tern", self.root.run(f"modinfo -k {kernels[0]} tern"))
        for other in stack("--list").split():
            more = stack("headers", TERN_STACK=other)
            if more != headers:
                before = self.installed()
                self.root.run(f"apt-get -q -y --no-install-recommends install {more}")
                self.assertEqual(len(self.modules()), 2, f"DKMS did not build for {more}")
                self.root.run(f"apt-get -q -y purge {' '.join(self.installed() - before)}")
                self.assertEqual(self.modules(), kernels)

    def check_provider(self):
        """libibverbs loads one when it sees a card; so does this."""
        path = self.root.run("sed -n 's/^driver //p' /etc/libibverbs.d/tern.driver")
        load = f"import ctypes; ctypes.CDLL('{path}-rdmav34.so', mode=2)"
        self.assertEqual(self.root.run(f'python3 -c "{load}"'), "")

    def check_card(self):
        self.assertIn("engines=", self.root.run("qemu-system-x86_64-tern -device tern,help"))
        refused = "TERN_QEMU=true qemu-system-x86_64-tern -version 2>&1 || echo $?"
        self.assertRegex(self.root.run(refused), "^qemu-system-x86_64-tern: .*\n1$")

    def check_completion(self):
        """What bash is offered when the package bash-completion has loaded the file."""
        press = (". /usr/share/bash-completion/completions/tern-lab; COMP_LINE='tern-lab st' "
                 "COMP_POINT=11 COMP_TYPE=9; _python_argcomplete tern-lab; echo $COMPREPLY")
        self.assertEqual(self.root.run(f"bash -c {shlex.quote(press)}"), "status")

    def check_hosts(self, *packages):
        """Hosts without a checkout, by the lines of the README."""
        text = (TOP / "README.md").read_text(encoding="utf-8")
        up, server, client, down = re.findall("^    (tern-lab .*)", text, re.MULTILINE)
        options = "".join(f" --package /packages/{name}_*.deb" for name in packages)
        self.root.run(up + options)
        try:
            self.root.run(server)
            said = self.root.run(client)
        finally:
            self.root.run(down)
        self.assertRegex(said, r"65536 +5000 +[\d.]+ +[\d.]+")
        print(f"\n{said}")


def main():
    if os.environ.get(INSIDE) != "1":
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              "-B", *sys.argv])
    unittest.main()


if __name__ == "__main__":
    main()
