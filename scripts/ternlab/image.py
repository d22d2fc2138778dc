# SPDX-License-Identifier: GPL-2.0-or-later
"""The guests' image, made by scripts/image when it is not in the cache."""

import pathlib
import subprocess

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

    @classmethod
    def get(cls, packages=()):
        for package in packages:
            if not pathlib.Path(package).is_file():
                raise LabError(f"there is no package {package}")
        made = subprocess.run([SCRIPTS / "image", *packages], stdout=subprocess.PIPE, text=True,
                              check=False)
        if made.returncode:
            raise LabError("the guests' image could not be made; see above")
        return cls(made.stdout.strip())
