# SPDX-License-Identifier: GPL-2.0-or-later
"""The picture of a ring in docs/hardware.md is what draw_ring.cc makes of the card's queue.

  check_ring.py PROGRAM [--write]
"""

import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/hardware.md"
PICTURE = re.compile(r"^    place .*\n(?:    .*\n)+", re.MULTILINE)


def main(program, *options):
    drawn = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    page = PAGE.read_text(encoding="utf-8")
    pictures = PICTURE.findall(page)
    if pictures == [drawn]:
        return 0
    if len(pictures) != 1 or options != ("--write",):
        print(f"{PAGE}: the picture of a ring is not that of {program}; --write puts it there")
        return 1
    PAGE.write_text(page.replace(pictures[0], drawn), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
