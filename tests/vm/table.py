# SPDX-License-Identifier: GPL-2.0-or-later
"""Results side by side, for a person."""


class Table:
    def __init__(self, title, *columns):
        self.title, self.columns = title, columns
        self._rows = {}

    def set(self, row, column, text):
        self._rows.setdefault(row, {})[column] = text

    def __bool__(self):
        return bool(self._rows)

    def __str__(self):
        lines = [(self.title, *self.columns)]
        lines += [(row, *(cells.get(column, "") for column in self.columns))
                  for row, cells in self._rows.items()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
                         for line in lines)
