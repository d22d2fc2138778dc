# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaves pages out of the state of a machine as QEMU saves it.

A state begins with a header. Sections of the RAM follow, each a list of records with a page, and
then the sections of the devices. The format is that of QEMU's migration (docs/devel/migration), and
its records are those of migration/ram.c.
"""

import contextlib
import os
import re
import struct

from .errors import LabError

VERSION = "1"  # to be changed with what drop_zero_pages() writes
_RAM = b"ram"  # the machine's memory-backend
_PAGE = 4096
# The head of the first section has its number, name ("ram"), instance (0) and version (4).
_FIRST = re.compile(rb"\x01(.{4})\x03ram\x00{4}\x00\x00\x00\x04", re.DOTALL)
_PART, _END, _COMMAND, _FOOTER = 0x02, 0x03, 0x08, 0x7e
# A record begins with the address of its page. The low bits have flags.
_ZERO, _SIZES, _WHOLE, _LAST, _SAME_BLOCK = 0x02, 0x04, 0x08, 0x10, 0x20


def drop_zero_pages(path):
    """Leaves the pages of the RAM that are zero out of the state in that file. Raises a LabError,
    and leaves the file as it is, if it is no such state.

    The memory of a new machine is zero, but QEMU compares it with each such page. It reads the page
    of the memfd for that, and the kernel allocates it then: this took half of the time to start
    from a snapshot.
    """
    fresh = path.with_suffix(".new")
    try:
        with open(path, "rb") as old, open(fresh, "wb") as new:
            _Filter(old, new).run()
        os.replace(fresh, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()


class _Filter:
    def __init__(self, old, new):
        self._old, self._new = old, new
        # The block of the last record that was read, and of the last one that was written.
        self._block = self._written = None

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
            kind, = self._copy(1)
            while kind == _COMMAND:  # QEMU 10 tells of the switchover in one
                *_, size = struct.unpack(">HH", self._copy(4))
                self._copy(size)
                kind, = self._copy(1)
            section = self._copy(4)
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
        """Copies the records of one section, without those of zero pages."""
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
            if kind & _ZERO and page == b"\0" and self._block == _RAM:
                continue
            same = self._block == self._written
            self._written = self._block
            self._new.write(struct.pack(
                ">Q", word | _SAME_BLOCK if same else word & ~_SAME_BLOCK))
            if not same:
                self._new.write(bytes([len(self._block)]) + self._block)
            self._new.write(page)

    def _sizes(self, left):
        """Copies the list of all blocks, whose sizes add up to @left bytes."""
        while left > 0:
            name = self._copy(*self._copy(1))
            size, = struct.unpack(">Q", self._copy(8))
            left -= size
            if not name:
                raise LabError(f"{self._old.name}: a block of RAM without a name")
