# SPDX-License-Identifier: GPL-2.0-or-later
"""The guests' image with a kernel of the user's in place of its own: a folder of the cache, too."""

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .errors import LabError
from .paths import SCRIPTS, cache
from .progress import step

MARK = "own_kernel"
MAKE_INITRD = SCRIPTS / "guest/make-initrd"
# Modules that a guest needs to mount the root disk, and for guest/boot, ssh and tern.ko.
NEEDED = ("virtio_pci", "virtio_blk", "ext4", "virtio_console", "virtio_net", "ib_uverbs")
# Links to where the modules were built.
NO_MODULES = ("build", "source")
# The header of Linux's boot protocol has a field with the offset of the version's text from the end
# of the boot sector.
MAGIC, MAGIC_AT, VERSION_AT, SECTOR = b"HdrS", 0x202, 0x20e, 0x200
HEADER_READ = SECTOR + 0x10000 + 256


def image_folder(base, bzimage, modules=None):
    """The folder of the image @base with this kernel, made if it is not in the cache."""
    bzimage = pathlib.Path(bzimage)
    version = version_of(bzimage)
    if modules:
        modules = pathlib.Path(modules).resolve()
        _check_modules(modules, bzimage, version)
    folder = cache() / f"image-kernel-{_key(base, bzimage, modules)}"
    if not folder.is_dir():
        with step(f"putting kernel {version} into the guests' image"), \
                tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as half:
            made = pathlib.Path(half, "made")
            made.mkdir()
            _make(made, base, bzimage, version, modules)
            with contextlib.suppress(OSError):  # if somebody has just made the same
                made.rename(folder)
    os.utime(folder)  # its last use: scripts/cache.sh deletes what is not used any more
    return folder


def version_of(bzimage):
    try:
        with open(bzimage, "rb") as file:
            begin = file.read(HEADER_READ)
    except OSError as error:
        raise LabError(f"{bzimage}: {error.strerror}") from None
    at = SECTOR + int.from_bytes(begin[VERSION_AT:VERSION_AT + 2], "little")
    found = re.match(rb"[\w.+~-]+", begin[at:])
    if begin[MAGIC_AT:MAGIC_AT + len(MAGIC)] != MAGIC or not found:
        raise LabError(f"{bzimage} is not a bzImage")
    return found[0].decode("ascii")


def _check_modules(folder, bzimage, version):
    """Raises a LabError if the modules are of another version, which it reads from one of them, as
    the folder may have any name."""
    if not (folder / "modules.builtin").is_file():
        raise LabError(f"{folder} is not like /lib/modules/{version}: it has no modules.builtin")
    module = next(folder.rglob("*.ko*"), None)
    if module:
        magic = _output(["modinfo", "-F", "vermagic", module]).split()
        if magic[:1] != [version]:
            raise LabError(f"{folder} has modules of kernel {' '.join(magic[:1])}, and {bzimage} "
                           f"is kernel {version}")


def _key(base, bzimage, modules):
    key = hashlib.sha256(f"{base}\n".encode())
    files = [pathlib.Path(__file__), MAKE_INITRD, bzimage]
    if modules:
        files += sorted(path for path in modules.rglob("*") if path.is_file()
                        and path.relative_to(modules).parts[0] not in NO_MODULES)
    for path in files:
        name = path.relative_to(modules) if modules in path.parents else path.name
        key.update(f"{name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return key.hexdigest()[:16]


def _make(made, base, bzimage, version, modules):
    for name in ("ssh_key", "known_hosts"):
        shutil.copy(base / name, made)
    shutil.copy(bzimage, made / "vmlinuz")
    (made / "kernel").write_text(version, encoding="ascii")
    (made / MARK).touch()
    if modules:
        shutil.copytree(modules, made / "modules", ignore=lambda folder, names: (
            NO_MODULES if pathlib.Path(folder) == modules else ()))
    else:
        (made / "modules").mkdir()
        for index in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            (made / "modules" / index).touch()
    with tempfile.TemporaryDirectory() as root:
        place = pathlib.Path(root, "lib/modules")
        place.mkdir(parents=True)
        (place / version).symlink_to(made / "modules")
        _output(["depmod", "-b", root, version])
        busybox = pathlib.Path(root, "busybox")
        with open(busybox, "wb") as file, open(base / "initrd", "rb") as initrd:
            subprocess.run(["cpio", "-i", "--quiet", "--to-stdout", "bin/busybox"], stdin=initrd,
                           stdout=file, check=True)
        initrd = [MAKE_INITRD, busybox]
        if modules:
            _check_needed(root, version, modules)
            initrd += [root, version]
        _output(initrd, cwd=made)
    _output(["cp", "--sparse=always", "--reflink=auto", base / "root.ext4", made])
    _put(made / "modules", made / "root.ext4", version)


def _check_needed(root, version, modules):
    for name in NEEDED:
        if subprocess.run(["modprobe", "-d", root, "-S", version, "--show-depends", name],
                          capture_output=True, check=False).returncode:
            raise LabError(f"{modules} has no {name}, and the kernel does not have it built in")


def _put(modules, root, version):
    """Copies the modules into a root file system, which is not mounted: that would take root."""
    # The image's own stay under another name: debugfs cannot delete a folder with all in it.
    place = "/usr/lib/modules"
    script = [f"link {place} {place}.image", f"unlink {place}", f"mkdir {place}"]
    for folder, folders, files in os.walk(modules):
        inside = os.path.join(place, version, os.path.relpath(folder, modules)).rstrip("/.")
        script += [f"mkdir {inside}", f"cd {inside}"]
        script += [f'write "{folder}/{name}" {name}' for name in files]
        folders.sort()
    refused = debugfs(root, script)
    if refused:
        raise LabError(f"the modules do not get into the guests' image: {refused[0]}")


def debugfs(root, commands):
    """Changes a root file system by commands of debugfs(8). Returns what debugfs says of those that
    failed."""
    done = subprocess.run(["debugfs", "-w", "-f", "/dev/stdin", root], capture_output=True,
                          input="\n".join(commands), text=True, check=False)
    # The exit code is 0 even if a command has failed. Without errors, debugfs only says its
    # version.
    said = [line for line in done.stderr.splitlines() if not re.match(r"debugfs \d", line)]
    return said or (["it fails without a reason"] if done.returncode else [])


def _output(command, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **how)
    if done.returncode:
        raise LabError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout
