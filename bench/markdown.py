# SPDX-License-Identifier: Apache-2.0
"""Makes tables in Markdown, and replaces the text of a page between two comments."""


def table(header, rows, left=1):
    """The lines of a table. Its first `left` columns are left-aligned, the others right-aligned."""
    lines = ["| " + " | ".join(header) + " |", "|---" * left + "|--:" * (len(header) - left) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def fill_in(path, name, lines):
    """Replaces the text of the page between the two comments with this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if begin not in text or end not in text:
        raise SystemExit(f"{path} has no place for {name}: {begin} ... {end}")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + "\n".join([begin, ""] + lines + ["", end]) + after)
