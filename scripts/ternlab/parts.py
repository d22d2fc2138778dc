# SPDX-License-Identifier: GPL-2.0-or-later
"""What was built or installed here, on its way into the guests.

A guest unpacks a tar archive over its root file system before it sees its
card. So a new tern.ko or provider costs no new image and no new snapshot, and
depmod, slow under TCG, runs here. The archive is a disk of the guest: over
its serial port it would come in pieces of 4 KiB.
"""

import contextlib
import hashlib
import io
import lzma
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

from . import paths, stack
from .errors import LabError
from .progress import step

ARCHIVE = "parts.tar"
SIZE = 64 << 20  # of each archive as a disk, as guests know it from their snapshot
TOOLS = ("terntop", "terntrace")


def archive(image):
    """The file, with whatever of the parts there is so far; made if it is not in the cache."""
    key = _key(image)
    folder = paths.cache() / f"parts-{key}"
    if not folder.is_dir():
        with step("packing tern.ko and the provider for the hosts"), \
                tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as half:
            made = pathlib.Path(half, "made")
            made.mkdir()
            _pack(image, made / ARCHIVE)
            if (made / ARCHIVE).stat().st_size > SIZE:
                raise LabError(f"what hosts get of {paths.BUILD} is larger than {SIZE >> 20} MiB")
            if _key(image) != key:
                raise LabError(f"{paths.BUILD} has changed while it was packed; "
                               "is a build running?")
            os.truncate(made / ARCHIVE, SIZE)  # tar ends at the zeros behind its files
            with contextlib.suppress(OSError):  # if somebody has just made the same
                made.rename(folder)
    os.utime(folder)  # its last use: scripts/cache.sh deletes what is not used any more
    return folder / ARCHIVE


def require_module(image):
    """Raises a LabError if there is no tern.ko for the hosts: they would wait for their cards."""
    module = _parts(image.kernel)[0]
    if image.has_packages or module.exists() or image.has_module("tern"):
        return
    if paths.INSTALLED:
        way = "tern-dkms makes it"
    elif image.has_own_kernel:
        way = ("`TERN_KDIR=FOLDER make module` makes it, with the tree or the headers of that "
               "kernel in FOLDER")
    else:
        way = "`make hosts` makes it, with the same TERN_STACK"
    raise LabError(f"{module} is not there; {way}")


def _key(image):
    """A hash of all files that the archive is made from, including this one."""
    kernel_module, provider, header, programs, tools = _parts(image.kernel)
    made_from = [pathlib.Path(__file__), kernel_module, provider, header, *programs, *tools]
    key = hashlib.sha256(f"{image.folder} {_plugin(provider)}".encode())
    for path in filter(pathlib.Path.exists, made_from):
        key.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return key.hexdigest()[:16]


def _pack(image, path):
    kernel_module, provider, header, programs, tools = _parts(image.kernel)
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        if image.has_packages:
            return
        if kernel_module.exists():
            _add_module(tar, image, kernel_module)
        if provider.exists():
            libraries = f"usr/lib/{stack.ask('triplet')}"
            _add_stripped(tar, provider, f"{libraries}/libtern.so.1", 0o644)
            _add_link(tar, f"{libraries}/libibverbs/{_plugin(provider)}", "../libtern.so.1")
            _add_text(tar, "etc/libibverbs.d/tern.driver", "driver tern\n")
        if header.exists():
            _add(tar, header, "usr/include/infiniband/terndv.h", 0o644)
        for program in programs:
            _add_stripped(tar, program, f"opt/tern/bin/{program.name}", 0o755)
        for tool in filter(pathlib.Path.exists, tools):
            _add_stripped(tar, tool, f"usr/sbin/{tool.name}", 0o755)


def _plugin(provider):
    """The file name by which libibverbs finds the provider; it depends on libibverbs' version."""
    return next(provider.parent.glob("libtern-rdmav*.so"), provider).name


def _parts(kernel):
    """The module, the provider, its header, the programs of the tests, and the tools."""
    if paths.INSTALLED:
        built = pathlib.Path("/lib/modules", kernel, "updates/dkms/tern.ko")
        packed = built.with_suffix(".ko.xz")
        return (packed if packed.exists() else built, _installed_provider(),
                paths.PREFIX / "include/infiniband/terndv.h", [],
                [paths.PREFIX / "sbin" / tool for tool in TOOLS])
    # Those of another architecture have a folder of their own: see Makefile.
    arch = stack.ask("arch")
    made = paths.BUILD / ("cmake" if arch == "amd64" else f"cmake-{arch}")
    programs = made / "guest"
    return (paths.BUILD / "kernel" / kernel / "tern.ko",
            made / "userspace/provider/libtern.so.1",
            paths.CHECKOUT / "userspace/provider/terndv.h",
            sorted(filter(pathlib.Path.is_file, programs.glob("*"))),
            [made / "userspace/tools" / tool for tool in TOOLS])


def _installed_provider():
    """As libibverbs finds it."""
    driver = pathlib.Path("/etc/libibverbs.d/tern.driver")
    name = driver.read_text(encoding="utf-8").split()[1] if driver.exists() else ""
    folder, _, stem = name.rpartition("/")
    return next(pathlib.Path(folder or "/").glob(f"{stem}-rdmav*.so"),
                pathlib.Path(f"{name}-rdmav.so"))


def _add_stripped(tar, path, name, mode):
    """A program or library; debugging information is nine tenths of one."""
    with tempfile.NamedTemporaryFile() as stripped:
        _strip(path, stripped.name)
        _add(tar, pathlib.Path(stripped.name), name, mode)


def _strip(path, stripped):
    subprocess.run([f"{stack.ask('triplet')}-strip", "--strip-debug", "-o", stripped, path],
                   check=True)


def _add(tar, path, name, mode):
    def as_root(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode = mode
        return entry

    tar.add(path.resolve(), name, filter=as_root, recursive=False)


def _add_text(tar, name, text):
    file = tarfile.TarInfo(name)
    file.size = len(text)
    tar.addfile(file, io.BytesIO(text.encode("ascii")))


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
        plain = pathlib.Path(base, "tern.ko")
        unpack = lzma.open if kernel_module.suffix == ".xz" else open
        with unpack(kernel_module, "rb") as packed:
            plain.write_bytes(packed.read())
        _strip(plain, tree / "updates/tern.ko")
        for folder in filter(pathlib.Path.is_dir, image.modules.iterdir()):
            if folder.name != "updates":
                (tree / folder.name).symlink_to(folder)
        for other in image.modules.glob("updates/*"):
            if not other.name.startswith("tern.ko"):
                (tree / "updates" / other.name).symlink_to(other)
        for index in image.modules.glob("modules.*"):
            shutil.copy(index, tree)
        subprocess.run(["depmod", "-b", base, image.kernel], check=True)

        target = f"usr/lib/modules/{image.kernel}"
        _add(tar, tree / "updates/tern.ko", f"{target}/updates/tern.ko", 0o644)
        # Those that kmod reads, and modinfo.
        for index in sorted([*tree.glob("modules.*.bin"), *tree.glob("modules.*soft*")]):
            _add(tar, index, f"{target}/{index.name}", 0o644)
