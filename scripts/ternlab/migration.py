# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of a machine as QEMU migrates it: as much of it as it takes to leave out pages.

It begins with a header. Sections with the RAM follow, of records of pages, and then the devices.
See docs/devel/migration of QEMU, and migration/ram.c for the records.
"""

import contextlib
import os
import re
import struct

from .errors import LabError

VERSION = "1"  # of what drop_zero_pages() makes of a state
RAM = "ram"  # the machine's memory-backend
_PAGE = 4096
# Its first section: number, name, instance, version.
_FIRST = re.compile(rb"\x01(.{4})\x03ram\x00{4}\x00\x00\x00\x04", re.DOTALL)
_PART, _END, _FOOTER = 0x02, 0x03, 0x7e
# What the low bits of a record say.
_ZERO, _SIZES, _WHOLE, _LAST, _SAME_BLOCK = 0x02, 0x04, 0x08, 0x10, 0x20


def drop_zero_pages(path):
    """Leaves out the pages of the RAM that are zero, in place.

    QEMU compares each such page with the memory of the new machine, which is zero already. To look
    at a page of a memfd allocates it: that took most of the time to start from a snapshot.
    """
    fresh = path.with_suffix(".new")
    try:
        with open(path, "rb") as old, open(fresh, "wb") as new:
            _Filter(old, new).run()
        os.replace(fresh, path)
    except (struct.error, UnicodeDecodeError) as error:
        raise LabError(f"{path}: not a state as QEMU saves it: {error}") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()


class _Filter:
    def __init__(self, old, new):
        self._old, self._new = old, new
        self._block = self._written = None  # whose pages are read and written

    def run(self):
        start = self._old.read(_PAGE)
        first = _FIRST.search(start)
        if not first:
            raise LabError(f"{self._old.name}: it has no section with RAM")
        self._new.write(start[:first.end()])
        self._old.seek(first.end())
        kind, number = None, first[1]
        while kind != _END:
            self._records()
            footer = self._copy(5)
            if footer != bytes([_FOOTER]) + number:
                raise LabError(f"{self._old.name}: a section of RAM ends with {footer.hex()}")
            kind, section = struct.unpack(">B4s", self._copy(5))
            if kind not in (_PART, _END) or section != number:
                raise LabError(f"{self._old.name}: section {kind} of {section.hex()} amid the RAM")
        self._records()
        while rest := self._old.read(1 << 20):
            self._new.write(rest)

    def _read(self, size):
        data = self._old.read(size)
        if len(data) != size:
            raise LabError(f"{self._old.name}: it ends amid the RAM")
        return data

    def _copy(self, size):
        data = self._read(size)
        self._new.write(data)
        return data

    def _records(self):
        """Those of one section, to its end."""
        while True:
            word, = struct.unpack(">Q", self._read(8))
            kind, named = word % _PAGE, not word & _SAME_BLOCK
            if kind == _LAST:
                self._new.write(struct.pack(">Q", word))
                return
            if kind == _SIZES:
                self._new.write(struct.pack(">Q", word))
                self._sizes(word - kind)
                continue
            if kind & ~_SAME_BLOCK not in (_ZERO, _WHOLE):
                raise LabError(f"{self._old.name}: a record of unknown kind {kind:#x}")
            if named:
                self._block = self._read(*self._read(1))
            page = self._read(1 if kind & _ZERO else _PAGE)
            if kind & _ZERO and page == b"\0" and self._block == RAM.encode():
                continue
            same = self._block == self._written
            self._written = self._block
            self._new.write(struct.pack(
                ">Q", word | _SAME_BLOCK if same else word & ~_SAME_BLOCK))
            if not same:
                self._new.write(bytes([len(self._block)]) + self._block)
            self._new.write(page)

    def _sizes(self, left):
        """Of all blocks, @left bytes together."""
        while left > 0:
            name = self._copy(*self._copy(1))
            size, = struct.unpack(">Q", self._copy(8))
            left -= size
            if not name:
                raise LabError(f"{self._old.name}: a block of RAM without a name")
