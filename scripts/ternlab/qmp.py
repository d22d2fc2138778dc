# SPDX-License-Identifier: GPL-2.0-or-later
"""Just enough of QEMU's monitor protocol."""

import contextlib
import json
import socket

from .errors import LabError


class Qmp:
    def __init__(self, path, timeout=10):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            if isinstance(error, BlockingIOError):
                raise TimeoutError("others wait for it, too") from None
            raise
        self._file = self._socket.makefile("rw", encoding="utf-8")
        try:
            self._read("before its greeting")
            self.execute("qmp_capabilities")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._file.close()  # which sends what could not be sent before
        self._socket.close()

    def _read(self, when):
        line = self._file.readline()
        if not line:
            raise LabError(f"QEMU went away {when}")
        return json.loads(line)

    def execute(self, command, **arguments):
        self._file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._file.flush()
        while True:
            answer = self._read(f"at {command}")
            if "error" in answer:
                raise LabError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def human(self, line):
        return self.execute("human-monitor-command", **{"command-line": line})
