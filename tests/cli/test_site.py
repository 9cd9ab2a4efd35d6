# SPDX-License-Identifier: Apache-2.0
"""The site that `make site` builds: its links lead somewhere, it loads nothing from the network, the chapters of
the ladder are whole, and a browser shows it on a desk and on a phone. Exits with 77 without MkDocs."""

import base64
import functools
import html.parser
import http.server
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
import xml.dom.minidom

import browser
from session import PROGRAM

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MAKE = os.path.join(ROOT, "docs", "site", "make_site.py")
sys.path.insert(0, os.path.dirname(MAKE))
import draw_product # noqa: E402 (its folder is not in the path before)
import make_site # noqa: E402

SCHEME = re.compile(r"[a-z]+:|//")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): # pylint: disable=arguments-differ
        pass


class Page(html.parser.HTMLParser):
    """The anchors, links and parts of a page. A browser loads the parts to show the page."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.parts = {"", "__top"}, [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.parts.append(values["href"])
        elif tag in ("script", "img", "iframe", "source") and "src" in values:
            self.parts.append(values["src"])


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tegula-site-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        made = subprocess.run([sys.executable, MAKE, cls.folder, PROGRAM], capture_output=True, text=True, check=False)
        if "material" in made.stderr and "theme" in made.stderr:
            raise unittest.SkipTest("no theme material (Debian's mkdocs-material)")
        assert made.returncode == 0, made.stderr + made.stdout
        cls.html = os.path.join(cls.folder, "html")
        cls.pages = {}
        for folder, _, names in os.walk(cls.html):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), cls.html)
                if name.endswith(".html") and name != "404.html": # this page is shown at any address
                    cls.pages[path] = Page(os.path.join(folder, name))

    def test_links_lead_somewhere(self):
        self.assertGreater(len(self.pages), 100)
        for path, page in self.pages.items():
            for link in page.links + page.parts:
                if SCHEME.match(link):
                    continue
                target, _, anchor = urllib.parse.unquote(link).partition("#")
                full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
                with self.subTest(page=path, link=link):
                    if os.path.isdir(os.path.join(self.html, full)):
                        full = posixpath.normpath(posixpath.join(full, "index.html"))
                    self.assertTrue(os.path.exists(os.path.join(self.html, full)))
                    if full in self.pages:
                        self.assertIn(anchor, self.pages[full].anchors)

    def test_nothing_comes_from_the_network(self):
        for path, page in self.pages.items():
            self.assertEqual([part for part in page.parts if SCHEME.match(part) and not part.startswith("data:")], [], path)

    def test_chapters(self):
        pages, _ = make_site.ladder_chapters(False)
        text = "".join(pages.values())
        for heading in make_site.headings(make_site.read(os.path.join(ROOT, "docs", "ladder.md"))):
            self.assertEqual(len(re.findall(f"^{re.escape(heading)}$", text, re.M)), 1, heading)
        for rows in make_site.exercises().values():
            for name, _ in rows:
                if name not in ("mend_beta",):
                    self.assertEqual(text.count(f"tegula learn start {name}`"), 1, name)
        for rung in make_site.exercises():
            self.assertIn(rung, make_site.rung_numbers())

    def test_the_drawing(self):
        path = os.path.join(self.html, "docs", "product.svg")
        text = make_site.read(path)
        self.assertEqual(xml.dom.minidom.parse(path).documentElement.tagName, "svg")
        self.assertIn("C is 512 x 512: 8 blocks,", text) # tiles of 128 x 256
        self.assertIn("384 threads are 3 warpgroups;", text)
        self.assertIn("0 bank conflicts; TMA stores 524288 bytes", text)
        facts = draw_product.facts_of("launch      6 x 1 x 1 blocks of 384 threads in clusters of 2\n"
                                      "TMA loads 1 requests 7 bytes\n multicast 5 bytes\n wgmma 9 requests\n"
                                      "by TMA 1 requests 8 bytes\n"
                                      "shared stores 3 requests 4 wavefronts 1.0 per request 8 bytes, 2 conflicts\n")
        drawn = draw_product.draw(facts, {"BM": 128, "BN": 256, "BK": 64})
        self.assertIn("3 clusters", drawn)
        self.assertIn("2 bank conflicts", drawn)
        with self.assertRaisesRegex(SystemExit, "does not say"):
            draw_product.facts_of("launch 6 x 1 x 1 blocks")

    def test_a_broken_link_stops_it(self):
        site = make_site.Site(os.path.join(self.folder, "other"), None)
        with self.assertRaisesRegex(SystemExit, "docs/a.md links to nothing.md, which does not exist"):
            site.relink("docs/a.md", "see [this](nothing.md)")
        self.assertEqual(site.relink("docs/a.md", "`[x](nothing.md)`"), "`[x](nothing.md)`")
        self.assertEqual(site.relink("docs/a.md", "[x](ladder.md#27-wmma)"), "[x](ladder-f16-rungs.md#27-wmma)")

    @unittest.skipIf(browser.missing(), browser.missing())
    def test_a_browser_shows_it(self):
        handler = functools.partial(Quiet, directory=self.html)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.RequestHandlerClass.log_message = lambda *_: None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        page = browser.Browser()
        self.addCleanup(page.close)
        base = f"http://127.0.0.1:{server.server_address[1]}/"
        for width, height in ((1280, 900), (390, 844)):
            page.emulate("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                         mobile=width < 500)
            for path in ("index.html", "docs/ladder-f16-rungs.html", "docs/learn.html"):
                with self.subTest(path, width=width):
                    page.open(base + path)
                    self.assertEqual(page.log(), [])
                    self.assertLessEqual(page.run("return document.documentElement.scrollWidth"), width)
                    self.assertGreater(len(page.run("return document.querySelector('h1').innerText")), 3)
                    loaded = page.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
                    self.assertEqual([name for name in loaded if not name.startswith((base, "data:", "blob:"))], [])
                    picture = base64.b64decode(page.call("GET", page.session + "/screenshot"))
                    self.assertGreater(len(picture), 10000) # a blank page has less
                    kept = os.environ.get("TEGULA_SCREENSHOTS")
                    if kept:
                        with open(os.path.join(kept, f"{path.replace('/', '-')}-{width}.png"), "wb") as file:
                            file.write(picture)


if __name__ == "__main__":
    if shutil.which("mkdocs") is None:
        print("no mkdocs (Debian's mkdocs and mkdocs-material)")
        sys.exit(77)
    unittest.main()
