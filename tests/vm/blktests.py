# SPDX-License-Identifier: GPL-2.0-or-later
"""blktests' groups for storage over RDMA, unchanged, in one host whose card sends to itself.

    TERN_BLKTESTS=FOLDER TERN_STACK=bookworm-6.12 /usr/bin/python3 -B tests/vm/blktests.py -v

FOLDER has the sources of blktests, of which Debian has no package; so CTest does not know this
scenario. Which tests pass has to be what tests/vm/blktests.toml says of the kernel.
"""

import os
import pathlib
import re
import subprocess
import tomllib

import rnbd
import source_modules
from scenario import LabError, Options, Scenario, main
from ternlab import stack
from ternlab.paths import SCRIPTS

LIST = pathlib.Path(__file__).with_suffix(".toml")
FOLDER = "/root/blktests"
# With rxe as the soft RDMA device, blktests takes the RDMA devices that there are.
CONFIG = """
USE_RXE=1
NVMET_TRTYPES=rdma
NVME_IMG_SIZE=350M
NVME_NUM_ITER=30
TIMEOUT=60
"""
# It also deletes RDMA devices at the end, which the card is asked for in vain.
RDMA = """#!/bin/sh
[ "$1 $2" != "link del" ] || exit 0
exec {rdma} "$@"
"""
RESULT = re.compile(r"^(\w+/\d+)(?: \((\w+=[^)]*)\))? .*\[(passed|failed|not run)\]", re.MULTILINE)


class Blktests(Scenario):
    HOSTS = ()

    @classmethod
    def setUpClass(cls):
        source = os.environ.get("TERN_BLKTESTS")
        if not source:
            raise LabError("TERN_BLKTESTS=FOLDER names the sources of blktests")
        made = subprocess.run([SCRIPTS / "blktests", source], stdout=subprocess.PIPE, text=True,
                              check=False)
        if made.returncode:
            raise LabError("blktests could not be prepared; see above")
        cls.HOSTS = (Options(mem="2G", share=made.stdout.strip()),)
        super().setUpClass()
        host, = cls.hosts
        host.run("tar -C / --skip-old-files --keep-directory-symlink -xf /share/root.tar && "
                 f"ldconfig && cp -r /share/blktests {FOLDER} && mkdir /opt/wrapped", timeout=300)
        host.write_file(f"{FOLDER}/config", CONFIG.encode())
        rdma = host.run("command -v rdma").out.strip()
        host.write_file("/opt/wrapped/rdma", RDMA.format(rdma=rdma).encode())
        host.run("chmod +x /opt/wrapped/rdma; modprobe loop; mount -t configfs none "
                 "/sys/kernel/config")

    def check(self, group):
        """Runs a group, and compares the tests that pass with those of the list."""
        host, = self.hosts
        told = host.run(f"cd {FOLDER} && PATH=/opt/wrapped:$PATH ./check {group}", check=False,
                        timeout=1800).out
        results = [(" ".join(filter(None, (name, condition))), result)
                   for name, condition, result in RESULT.findall(told)]
        passed = [name for name, result in results if result == "passed"]
        wanted = [name for name in tomllib.loads(LIST.read_text(encoding="utf-8")).get(
            stack.ask("kernel"), []) if name.startswith(f"{group}/")]
        print(f"\n{group}: {len(passed)} of {len(results)} passed", passed, sep="\n")
        self.assertEqual(passed, wanted, told)

    def test_nvme(self):
        self.check("nvme")

    def test_srp(self):
        self.check("srp")

    def test_rnbd(self):
        host, = self.hosts
        host.run("modprobe rdma_cm")
        modules = dict.fromkeys((*rnbd.SERVER_MODULES, *rnbd.CLIENT_MODULES))
        source_modules.insert(host, "rnbd", modules)
        try:
            self.check("rnbd")
        finally:
            rnbd.unload(host, list(modules))


if __name__ == "__main__":
    main()
