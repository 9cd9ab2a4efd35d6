# SPDX-License-Identifier: Apache-2.0
"""`tegula info` names the devices and the environment variables that nothing reads. It knows those of tegula's pages."""

import os
import re
import unittest

from session import tegula

PAGES = os.path.join(os.path.dirname(__file__), "..", "..", "docs")


def unknown(**variables):
    """The variables that `tegula info` names as unknown, without those of the test itself."""
    others = {name for name in os.environ if name.startswith("TEGULA_")}
    out = tegula("info", env=variables).out
    return set(re.findall(r"unknown setting: (\w+),", out)) - (others - set(variables))


class Settings(unittest.TestCase):
    def test_misspelt_names(self):
        self.assertEqual(unknown(TEGULA_CASHE="/tmp", TEGULA_="1"), {"TEGULA_CASHE", "TEGULA_"})

    def test_documented_names(self):
        names = set()
        for page in ("environment.md", "cublas.md", "drop-ins.md"):
            with open(os.path.join(PAGES, page), encoding="utf-8") as file:
                names |= set(re.findall(r"^\| `(TEGULA_\w+)`", file.read(), re.MULTILINE))
        self.assertGreater(len(names), 10)
        self.assertEqual(unknown(**{name: os.environ.get(name, "") for name in names}), set())


class Info(unittest.TestCase):
    def test_names_the_cpu_and_says_why_others_are_missing(self):
        result = tegula("info")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("\ncpu\n", result.out)
        for name in "cuda:0", "sim":
            self.assertIn(f"\n{name}\n", result.out)


if __name__ == "__main__":
    unittest.main()
