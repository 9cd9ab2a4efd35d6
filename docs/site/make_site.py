#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_site.py OUTPUT [PROGRAM]: builds the site with MkDocs (Debian's mkdocs and mkdocs-material).

The pages are the Markdown files of the repository. They are copied to OUTPUT/pages, in the folders that they
have in the repository, so that their links hold. What they link to is copied as well: pictures as they are,
sources as pages that show them. docs/ladder.md becomes several chapters, each of which ends with its exercises.
With PROGRAM (tegula) there are also the page that `tegula ladder --html` writes, and the drawing of a product.
The site is in OUTPUT/html and loads nothing from the network."""

import os
import posixpath
import re
import shutil
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

# The chapters of docs/ladder.md: the heading that each begins with, its file, its name in the menu, and the
# rungs that it has. Chapters of one file stand in the order of that file. What comes before stays in ladder.md.
CHAPTERS = [
    ("# Chapter 1: FP32 on CUDA cores", "ladder-fp32", "FP32 on CUDA cores", range(0)),
    ("### 0. reference", "ladder-fp32-tiles", "Rungs 1 to 9: tiles", range(1, 10)),
    ("### 10. conflict-free", "ladder-fp32-pipeline", "Rungs 10 to 18: overlap", range(10, 19)),
    ("### 19. large thread tile", "ladder-fp32-copies", "Rungs 19 to 26: copies and splits", range(19, 27)),
    ("# Chapter 2: f16 on tensor cores", "ladder-f16", "f16 on tensor cores", range(0)),
    ("### 27. wmma", "ladder-f16-rungs", "Rungs 27 to 33", range(27, 34)),
    ("# Chapter 3: FP32 accuracy from tensor cores", "ladder-words", "FP32 from tensor cores", range(34, 37)),
    ("# The counters of an H200", "ladder-counters", "What warps wait for", range(0)),
    ("## The simulator beside the chip", "ladder-simulator", "The simulator beside the chip", range(0)),
]
CHAPTER_LINES_MAX = 250

# The menu: a title and a page, or a title and more of the menu. None: the chapters of the ladder.
MENU = [
    ("Home", "README.md"),
    ("Tutorials", [("The program", "docs/command-line.md"), ("Python", "docs/python.md"),
                   ("Drop-ins for BLAS", "docs/drop-ins.md"), ("Drop-in for cuBLAS", "docs/cublas.md")]),
    ("The ladder", None),
    ("Exercises", "docs/learn.md"),
    ("How it works", [("A product", "docs/data-flow.md"), ("The simulator", "docs/simulator.md"),
                      ("Accuracy", "docs/accuracy.md"), ("Adding a kernel", "docs/adding-a-kernel.md"),
                      ("Adding a microkernel", "docs/adding-a-microkernel.md"),
                      ("Contributing", "CONTRIBUTING.md"), ("Notes", "docs/notes/README.md")]),
    ("Reference", [("The API: tegula.h", "include/tegula/tegula.h"), ("Environment", "docs/environment.md"),
                   ("Changelog", "CHANGELOG.md"), ("All documents", "docs/README.md")]),
    ("Results", "docs/performance.md"),
]

LINK = re.compile(r"(!?\[(?:[^\]\\]|\\.|\]\()*?\]\()([^)\s]+)(\))")
PICTURES = (".png", ".svg", ".html")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_code(text):
    """The text with its code blanked out, so that places stay the same."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    text = re.sub(r"^(```|~~~).*?^\1", blank, text, flags=re.S | re.M)
    text = re.sub(r"^(?: {4}|\t)(?! *[-*] ).*$", blank, text, flags=re.M)
    return re.sub(r"`[^`\n]*`", blank, text)


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading.lstrip("#").strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(text):
    return re.findall(r"^#+ .*$", without_code_blocks(text), re.M)


def without_code_blocks(text):
    return re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M)


# ---- The ladder's chapters -----------------------------------------------------------------------------


def exercises():
    """The exercises of each rung's name, from the table of docs/learn.md; not those of no rung."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (\w+) \|$", read(f"{ROOT}/docs/learn.md"), re.M)
    found = {}
    for name, goal, rung in rows:
        if rung != "none":
            found.setdefault(rung, []).append((name, goal))
    return found


def rung_numbers():
    """The number of each rung, from the names of the kernels."""
    found = {}
    for file in os.listdir(f"{ROOT}/kernels/ladder"):
        kernel = re.fullmatch(r"(\d+)_(\w+)\.cu?", file)
        if kernel:  # else a header
            found[kernel[2]] = int(kernel[1])
    found["words_three"] = found["words"]
    return found


def chapter_end(numbers, rungs):
    """The exercises that end a chapter."""
    lines = [f"- `tegula learn start {name}` (rung {numbers[rung]}): {goal}"
             for rung, rows in sorted(exercises().items(), key=lambda item: numbers[item[0]])
             if numbers[rung] in rungs for name, goal in rows]
    if not lines:
        return ""
    return "\n## Exercises of this chapter\n\n[They need no GPU](learn.md):\n\n" + "\n".join(lines) + "\n"


def ladder_chapters(has_drawings):
    """The chapters of docs/ladder.md by file name, and the file that has each anchor."""
    text = read(f"{ROOT}/docs/ladder.md")
    numbers = rung_numbers()
    starts = [text.index(f"\n{heading}\n") + 1 for heading, *_ in CHAPTERS] + [len(text)]
    assert starts == sorted(starts), "the chapters are in the order of docs/ladder.md"
    pages = {"ladder": text[:starts[0]]}
    for (heading, name, title, rungs), begin, end in zip(CHAPTERS, starts, starts[1:]):
        body = text[begin:end]
        lines = body.count("\n")
        assert lines <= CHAPTER_LINES_MAX, f"{name} has {lines} lines; {CHAPTER_LINES_MAX} are the limit"
        if not heading.startswith("# "):
            body = f"# {title}\n\n{body}"
        pages[name] = body + chapter_end(numbers, rungs)
    contents = "\n".join(f"- [{title}]({name}.md)" for _, name, title, _ in CHAPTERS)
    if has_drawings:
        contents += ("\n- [All rungs with drawings of what warps access](ladder-page.html)\n\n"
                     "![A product of the rung f16_persistent, from the grid to the banks](product.svg)")
    pages["ladder"] += f"\n## Contents\n\n{contents}\n"
    homes = {slug(heading): name for name, body in pages.items() for heading in headings(body)}
    pages = {name: relink_chapter(name, body, homes) for name, body in pages.items()}
    return {f"docs/{name}.md": body for name, body in pages.items()}, homes


def relink_chapter(name, body, homes):
    """Links within the ladder may lead to another chapter now."""
    def target(match):
        anchor = match[2][1:] if match[2].startswith("#") else None
        if anchor is None or homes.get(anchor, name) == name:
            return match[0]
        return f"{match[1]}{homes[anchor]}.md#{anchor}{match[3]}"
    return LINK.sub(target, body)


# ---- Pages ---------------------------------------------------------------------------------------------


class Site:
    """The pages that have been found so far."""

    def __init__(self, output, program):
        self.pages = os.path.join(output, "pages")
        self.chapters, self.homes = ladder_chapters(program is not None)
        self.done = set()
        shutil.rmtree(self.pages, ignore_errors=True)
        os.makedirs(os.path.join(self.pages, "docs"))
        if program is not None:
            subprocess.run([program, "ladder", "--device", "sim", "--html", f"{self.pages}/docs/ladder-page.html"],
                           check=True)
            subprocess.run([sys.executable, f"{ROOT}/docs/site/draw_product.py", program,
                            f"{self.pages}/docs/product.svg"], check=True)

    def write(self, path, text):
        full = os.path.join(self.pages, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def copy(self, source, path):
        full = os.path.join(self.pages, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        shutil.copyfile(source, full)

    def page_of(self, path):
        """The page or file of the site that shows a path of the repository; it is made if need be."""
        is_folder = os.path.isdir(os.path.join(ROOT, path))
        page = path if path.endswith(".md") or path.endswith(PICTURES) else path + ("/README.md" if is_folder else ".md")
        if page in self.done or os.path.exists(os.path.join(self.pages, page)):
            return page
        self.done.add(page)
        full = os.path.join(ROOT, path)
        if page in self.chapters:
            self.write(page, self.relink(page, self.chapters[page]))
        elif path.endswith(".md") and not path.endswith("_template.md"):
            self.write(page, self.relink(page, read(full)))
        elif path.endswith(PICTURES):
            self.copy(full, page)
        elif is_folder and os.path.exists(os.path.join(full, "README.md")):
            self.write(page, self.relink(page, read(os.path.join(full, "README.md"))))
        elif is_folder:
            names = sorted(name for name in os.listdir(full) if os.path.isfile(os.path.join(full, name)))
            self.write(page, f"# {path}\n\n" + "".join(f"- [{name}]({name})\n" for name in names))
            self.write(page, self.relink(page, read(os.path.join(self.pages, page))))
        else:
            kind = {".h": "c", ".c": "c", ".cu": "c", ".py": "python", ".sh": "sh"}.get(os.path.splitext(path)[1], "text")
            text = read(full)
            self.write(page, f"# {path}\n\n~~~~~~{kind}\n{text}\n~~~~~~\n")
        return page

    def relink(self, page, text):
        """The text with links to pages of the site, each of which is made. A missing file is an error."""
        plain = without_code(text)
        folder = posixpath.dirname(page)
        result, at = [], 0
        for match in LINK.finditer(plain):
            target, _, anchor = match[2].partition("#")
            if target == "" or re.match(r"[a-z]+:", target):
                continue
            path = posixpath.normpath(posixpath.join(folder, target))
            if not (os.path.exists(os.path.join(ROOT, path)) or path in self.chapters or
                    os.path.exists(os.path.join(self.pages, path))):
                sys.exit(f"{page} links to {target}, which does not exist")
            if path == "docs/ladder.md" and self.homes.get(anchor, "ladder") != "ladder":
                path = f"docs/{self.homes[anchor]}.md"
            made = posixpath.relpath(self.page_of(path), folder or ".")
            result += [text[at:match.start(2)], made + ("#" + anchor if anchor else "")]
            at = match.end(2)
        return "".join(result) + text[at:]


def menu(site, rows, depth=1):
    """The menu as YAML, and its pages."""
    text = ""
    for title, target in rows:
        text += "  " * depth + f"- \"{title}\":"
        if target is None:
            target = [("About", "docs/ladder.md")] + [(name, f"docs/{file}.md") for _, file, name, _ in CHAPTERS]
        if isinstance(target, list):
            text += "\n" + menu(site, target, depth + 1)
        else:
            text += f" {site.page_of(target)}\n"
    return text


CONFIGURATION = """\
site_name: Tegula
docs_dir: pages
site_dir: html
use_directory_urls: false
theme:
  name: material
  font: false # none of Google's
  features: [navigation.tabs, navigation.top]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      toggle: {icon: material/brightness-7, name: Dark}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      toggle: {icon: material/brightness-4, name: Light}
extra: {generator: false}
extra_css: [site.css]
plugins: [search]
markdown_extensions:
  - tables
  - fenced_code
  - codehilite: {guess_lang: false}
  - toc:
      permalink: true
      slugify: !!python/name:make_site.slug_of
nav:
"""


def slug_of(text, separator):
    """For MkDocs: anchors as GitHub makes them."""
    assert separator == "-"
    return slug(text)


def main():
    output = os.path.abspath(sys.argv[1])
    os.makedirs(output, exist_ok=True)
    site = Site(output, sys.argv[2] if len(sys.argv) > 2 else None)
    rows = menu(site, MENU)
    shutil.copyfile(os.path.join(ROOT, "docs", "site", "site.css"), os.path.join(site.pages, "site.css"))
    with open(os.path.join(output, "mkdocs.yml"), "w", encoding="utf-8") as file:
        file.write(CONFIGURATION + rows)
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__)), PYTHONDONTWRITEBYTECODE="1")
    sys.exit(subprocess.run(["mkdocs", "build", "--quiet", "--clean", "--config-file", f"{output}/mkdocs.yml"],
                            env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
