# SPDX-License-Identifier: GPL-2.0-or-later
"""What tells soonest that Tern does not fit a kernel, a QEMU or an rdma-core: the programs of
`make run`, and what only the newest of these have. scripts/newest has made all that it takes."""

import sys

from scenario import Scenario, main
from ternlab import demo, paths

UNAVAILABLE = paths.BUILD / "newest-unavailable"
SKIPPED = 77  # SKIP_RETURN_CODE of CTest


class Smoke(Scenario):
    def test_programs_of_make_run(self):
        for host in self.hosts:
            demo.introduce(host)
        table = demo.measure(*self.hosts)
        print("\n".join(table))
        self.assertEqual([row.split()[0] for row in table], [name for name, _ in demo.RUNS])

    def test_completion_counters(self):
        said = self.verbs_check("completion-counters completion-counter-errors")
        self.assertNotIn("lacking", said)


if __name__ == "__main__":
    if UNAVAILABLE.exists():  # never on the stack's Debian, where build/ is another folder
        print(UNAVAILABLE.read_text(encoding="utf-8").strip())
        sys.exit(SKIPPED)
    main()
