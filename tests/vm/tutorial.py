# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/tutorial.md, run as written (page.py). With TERN_PICTURES=write the pictures that its
commands make become those of docs/pictures."""

import os
import re

from page import Page
from scenario import main
from ternlab.paths import CHECKOUT

PAGE = CHECKOUT / "docs/tutorial.md"
PICTURES = CHECKOUT / "docs/pictures"
LICENCE = "<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"


class Tutorial(Page):
    def test_page(self):
        """One test, as each lesson may build on those before it."""
        text = PAGE.read_text(encoding="utf-8")
        self.run_scripts(text)
        self.check_pictures(text)

    def check_pictures(self, text):
        """The page's pictures are those that its commands have made."""
        made = {path.name: path for path in self.folder.glob("*.svg")}
        self.assertEqual(set(made), set(re.findall(r"\(pictures/(.*?)\)", text)))
        for name, path in made.items():
            if os.environ.get("TERN_PICTURES") == "write":
                (PICTURES / name).write_text(LICENCE + path.read_text(encoding="utf-8"),
                                             encoding="utf-8")


if __name__ == "__main__":
    main()
