# SPDX-License-Identifier: GPL-2.0-or-later
"""Drivers of Linux that Debian leaves out, as scripts/kernel-module builds them."""

import pathlib
import subprocess

from ternlab.errors import LabError
from ternlab.paths import SCRIPTS


def insert(host, name, modules):
    """Loads modules of `scripts/kernel-module NAME`, each after those that it needs."""
    made = subprocess.run([SCRIPTS / "kernel-module", name], stdout=subprocess.PIPE, text=True,
                          check=False)
    if made.returncode:
        raise LabError(f"{name} could not be built; see above")
    for module in modules:
        file = f"{module}.ko"
        host.write_file(f"/tmp/{file}", (pathlib.Path(made.stdout.strip()) / file).read_bytes())
        host.run(f"grep -q '^{module.replace('-', '_')} ' /proc/modules || insmod /tmp/{file}")
