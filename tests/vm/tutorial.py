# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/tutorial.md, run as written (page_run.py). With TERN_PICTURES=write the pictures that its
commands make become those of docs/pictures."""

import os
import re

from page_run import Page, plain
from scenario import main
from ternlab.paths import CHECKOUT

PAGE = CHECKOUT / "docs/tutorial.md"
PICTURES = CHECKOUT / "docs/pictures"
LICENCE = "<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"
REPEATED = 'class="again"'  # of a line that is sent again


class Tutorial(Page):
    def test_page(self):
        """One test, as each lesson may build on those before it."""
        text = PAGE.read_text(encoding="utf-8")
        self.assertGreater(self.run_scripts(text), 5)
        self.check_pictures(text)

    def check_pictures(self, text):
        """Those that the page's commands make have all kinds of lines that the page's have, whose
        numbers and order differ from run to run. Which kinds of packets are repeated does, too: it
        depends on what was sent before the NAK came."""
        made = {path.name: path for path in self.folder.glob("*.svg")}
        self.assertEqual(set(made), set(re.findall(r"\(pictures/(.*?)\)", text)))
        for name, path in made.items():
            drawn = LICENCE + path.read_text(encoding="utf-8")
            if os.environ.get("TERN_PICTURES") == "write":
                (PICTURES / name).write_text(drawn, encoding="utf-8")
            with self.subTest(name):
                wanted = (PICTURES / name).read_text(encoding="utf-8")
                missing = set(plain(wanted).splitlines()) - set(plain(drawn).splitlines())
                self.assertEqual({line for line in missing if REPEATED not in line}, set())
                self.assertEqual(REPEATED in drawn, REPEATED in wanted)


if __name__ == "__main__":
    main()
