# SPDX-License-Identifier: GPL-2.0-or-later
"""What was built here, on its way into the guests.

A guest unpacks a tar archive over its root file system before it sees its
card. So a new tern.ko or provider costs no new image and no new snapshot, and
depmod, slow under TCG, runs here.
"""

import pathlib
import shutil
import subprocess
import tarfile
import tempfile

from .paths import BUILD, CHECKOUT

LIBRARIES = "usr/lib/x86_64-linux-gnu"


def pack(image, archive):
    """Writes the archive, with whatever of the parts has been built so far."""
    kernel_module = BUILD / "kernel" / image.kernel / "tern.ko"
    provider = BUILD / "cmake/userspace/provider/libtern.so.1"
    sources = CHECKOUT / "userspace/provider"
    programs = BUILD / "cmake/guest"

    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        if kernel_module.exists():
            _add_module(tar, image, kernel_module)
        if provider.exists():
            _add_stripped(tar, provider, f"{LIBRARIES}/{provider.name}", 0o644)
            _add_link(tar, f"{LIBRARIES}/libibverbs/libtern-rdmav34.so", f"../{provider.name}")
            _add(tar, sources / "tern.driver", "etc/libibverbs.d/tern.driver", 0o644)
            _add(tar, sources / "terndv.h", "usr/include/infiniband/terndv.h", 0o644)
        if programs.is_dir():
            for program in sorted(programs.iterdir()):
                if program.is_file():
                    _add_stripped(tar, program, f"opt/tern/bin/{program.name}", 0o755)


def _add_stripped(tar, path, name, mode):
    """A program or library; debugging information is nine tenths of one."""
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "--strip-debug", "-o", stripped.name, path], check=True)
        _add(tar, pathlib.Path(stripped.name), name, mode)


def _add(tar, path, name, mode):
    def as_root(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode = mode
        return entry

    tar.add(path.resolve(), name, filter=as_root, recursive=False)


def _add_link(tar, name, target):
    link = tarfile.TarInfo(name)
    link.type = tarfile.SYMTYPE
    link.linkname = target
    tar.addfile(link)


def _add_module(tar, image, kernel_module):
    """tern.ko and the module indexes that know it: `modprobe tern`, and udev by its alias."""
    with tempfile.TemporaryDirectory() as base:
        tree = pathlib.Path(base, "lib/modules", image.kernel)
        (tree / "updates").mkdir(parents=True)
        subprocess.run(["strip", "--strip-debug", "-o", tree / "updates/tern.ko", kernel_module],
                       check=True)
        (tree / "kernel").symlink_to(image.modules / "kernel")
        for index in image.modules.glob("modules.*"):
            shutil.copy(index, tree)
        subprocess.run(["depmod", "-b", base, image.kernel], check=True)

        target = f"usr/lib/modules/{image.kernel}"
        _add(tar, tree / "updates/tern.ko", f"{target}/updates/tern.ko", 0o644)
        # Those that kmod reads, and modinfo.
        for index in sorted([*tree.glob("modules.*.bin"), *tree.glob("modules.*soft*")]):
            _add(tar, index, f"{target}/{index.name}", 0o644)
