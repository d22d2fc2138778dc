# SPDX-License-Identifier: GPL-2.0-or-later
"""The guests' image, made by scripts/image when it is not in the cache; with a kernel of the user's
or a debug kernel in place of its own, put there by own_kernel.py."""

import contextlib
import os
import pathlib
import subprocess

from . import own_kernel, stack
from .errors import LabError
from .paths import SCRIPTS


class Image:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.root = self.folder / "root.ext4"
        self.vmlinuz = self.folder / "vmlinuz"
        self.initrd = self.folder / "initrd"
        self.modules = self.folder / "modules"
        self.ssh_key = self.folder / "ssh_key"
        self.known_hosts = self.folder / "known_hosts"

    @property
    def kernel(self):
        """Its version. An old lab may remember an image that is gone, and must still end."""
        return (self.folder / "kernel").read_text(encoding="ascii").strip()

    @property
    def has_packages(self):
        """Whether Tern is in it; otherwise hosts get what is built here."""
        return (self.folder / "installed").exists()

    @property
    def has_own_kernel(self):
        """Whether its kernel is the user's."""
        return (self.folder / own_kernel.MARK).exists()

    def touch(self):
        """Keeps it in the cache: scripts/cache.sh deletes what nobody has used in a month."""
        with contextlib.suppress(OSError):  # An old lab may remember an image that is gone.
            os.utime(self.folder)

    def to_json(self):
        return {"image": str(self.folder)}

    def has_module(self, name):
        """Whether its kernel brings the module along, or has it built in."""
        indexes = (self.modules / index for index in ("modules.dep", "modules.builtin"))
        return any(f"/{name}.ko" in index.read_text(encoding="utf-8")
                   for index in indexes if index.exists())

    @classmethod
    def get(cls, packages=(), kernel=None, modules=None):
        """With packages installed, or with a kernel of the user's: its bzImage, and the folder of
        its modules if it has not all of them built in."""
        for package in packages:
            if not pathlib.Path(package).is_file():
                raise LabError(f"there is no package {package}")
        if not kernel and stack.has_debug_kernel():
            built = _made_by("debug-kernel")
            kernel, modules = built / "bzImage", built / "modules"
        folder = _made_by("image", *packages, TERN_STACK=stack.ask("stock"))
        return cls(own_kernel.image_folder(folder, kernel, modules) if kernel else folder)


def _made_by(script, *arguments, **environment):
    """The folder that the script prints."""
    made = subprocess.run([SCRIPTS / script, *arguments], stdout=subprocess.PIPE, text=True,
                          check=False, env={**os.environ, **environment})
    if made.returncode:
        raise LabError(f"the guests' {script} could not be made; see above")
    return pathlib.Path(made.stdout.strip())
