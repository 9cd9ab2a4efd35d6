# SPDX-License-Identifier: Apache-2.0
"""The ladder's page in a browser without a window: it opens, its controls work, and the console shows no
errors. Exits with 77 where there is no browser."""

import os
import shutil
import sys
import tempfile
import unittest

import browser
from session import tegula

ARROW_RIGHT, ARROW_LEFT = "\ue014", "\ue012" # WebDriver's codes of keys


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tegula-page-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        result = tegula("ladder", "--device", "sim", "--size", 64, "--html", "l.html", cwd=cls.folder)
        assert (result.code, result.err) == (0, ""), result.err
        cls.page = browser.Browser()
        cls.addClassCleanup(cls.page.close)

    def setUp(self):
        self.page.emulate("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1,
                          mobile=False)
        self.page.emulate("Emulation.setEmulatedMedia", features=[])
        self.page.open("about:blank")
        self.page.log()
        self.page.open(f"file://{self.folder}/l.html#vectorised")

    def tearDown(self):
        self.assertEqual(self.page.log(), [])

    def text(self, name):
        return self.page.run(f"return document.getElementById('{name}').textContent")

    def test_it_opens(self):
        self.assertEqual(self.text("name"), "7. vectorised")
        self.assertIn("float4", self.text("idea"))
        self.assertIn("NVIDIA H200", self.text("speed"))
        self.assertEqual(self.page.run("return document.querySelectorAll('#rung option').length"), 36)
        self.assertEqual(self.page.run("return document.querySelectorAll('#tables tbody tr').length"), 36)
        self.assertNotIn("not measured", self.text("tables"))
        # The page is one file: nothing was fetched for it.
        self.assertEqual(self.page.run("return performance.getEntriesByType('resource').length"), 0)

    def test_the_slider_moves_by_keys(self):
        before = self.text("step-text"), self.page.run("return document.getElementById('drawing').innerHTML")
        self.page.press("#step", ARROW_RIGHT)
        after = self.text("step-text"), self.page.run("return document.getElementById('drawing').innerHTML")
        self.assertRegex(self.text("step-number"), r"^2 of \d+$")
        self.assertNotEqual(before[0], after[0])
        self.assertNotEqual(before[1], after[1])
        self.assertIn("shared store", after[0])
        line = self.page.run("return document.querySelector('#source tr.now').id")
        self.assertIn(f"Line {line[5:]},", after[0])
        self.page.press("#step", ARROW_LEFT)
        self.assertEqual(self.text("step-text"), before[0])
        self.page.run("document.getElementById('step-after').click()")
        self.assertEqual(self.text("step-text"), after[0])

    def test_lanes(self):
        self.page.press("#lane", 4 * ARROW_RIGHT)
        self.assertEqual(self.text("lane-number"), "3")
        self.assertRegex(self.text("lane-text"), r"^Lane 3: A\[1\]\[4\]\.$")
        self.assertGreater(self.page.run("return document.querySelectorAll('#drawing .other').length"), 10)

    def test_the_drawing_of_banks_shows_the_wavefronts(self):
        shown = self.page.run("""
            const trace = data.rungs[chosen.rung].trace, found = [];
            trace.steps.forEach((step, i) => {
              if (step.wavefronts === undefined) return;
              showStep(i);
              found.push([step.wavefronts, document.querySelectorAll('svg.banks rect.frame').length,
                          step.conflicts, document.querySelectorAll('svg.banks text.bad').length]);
            });
            return found;""")
        self.assertGreater(len(shown), 10)
        self.assertGreater(sum(row[2] for row in shown), 0)
        for wavefronts, rows, conflicts, marked in shown:
            self.assertEqual((wavefronts, conflicts), (rows, marked))

    def test_every_step_of_every_rung(self):
        shown = self.page.run("""
            return data.rungs.map((rung, i) => {
              showRung(i);
              let empty = 0;
              rung.trace.steps.forEach((step, at) => {
                if (at > 0 && step.line === rung.trace.steps[at - 1].line) return; // others are like it
                chosen.lane = at % 32;
                showStep(at);
                const drawn = document.querySelectorAll('#drawing svg rect').length > 1;
                const marked = document.querySelector('#source tr.now') !== null;
                if (!drawn || !marked || /undefined|NaN|null/.test(document.getElementById('steps').textContent)) empty++;
              });
              return [rung.name, document.getElementById('idea').textContent.length > 20, empty];
            });""")
        self.assertEqual([row for row in shown if row[1:] != [True, 0]], [])

    def test_rungs_are_reached_by_links_and_buttons(self):
        self.page.run("document.getElementById('after').click()")
        self.page.run("document.querySelector(\"a[href='#f16_wgmma']\").click()")
        self.assertEqual(self.page.run("return document.getElementById('rung').value"), "f16_wgmma")
        self.page.run("document.getElementById('before').click()")
        self.assertEqual(self.text("name"), "30. f16_multistage")
        self.assertRegex(self.text("speed"), r"^Speed in TFLOP/s and share of cuBLAS, .*8192³\s\d+")

    def test_controls_have_names(self):
        unnamed = self.page.run("""
            return [...document.querySelectorAll('input, select, button, summary')].filter((x) =>
              !(x.labels && x.labels.length > 0) && !x.getAttribute('aria-label') && x.textContent.trim() === '').length""")
        self.assertEqual(unnamed, 0)

    def test_a_phone(self):
        self.page.emulate("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
        for name in "naive", "f16_fragments", "f16_persistent":
            self.page.run(f"showRung(data.rungs.findIndex((rung) => rung.name === '{name}')); "
                          "document.querySelectorAll('details').forEach((x) => { x.open = true; })")
            self.assertEqual(self.page.run("return document.documentElement.scrollWidth"), 360)

    def test_light_and_dark(self):
        papers = set()
        for value in "light", "dark":
            self.page.emulate("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])
            papers.add(self.page.run("return getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(papers, {"rgb(253, 252, 249)", "rgb(22, 23, 26)"})


if __name__ == "__main__":
    lacks = browser.missing()
    if lacks:
        print(f"SKIPPED: this machine has not got {lacks}")
        sys.exit(77)
    os.environ.pop("TEGULA_SIM_SEED", None)
    unittest.main()
