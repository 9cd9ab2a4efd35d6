#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""draw_product.py PROGRAM OUTPUT.svg: draws how one product is divided: grid, cluster, block, warp, tile in
shared memory, banks. The product is that of the ladder's rung f16_persistent at a small size; its counts are
those of the simulator, which PROGRAM (tegula) runs, and its tile sizes those of the kernel's file."""

import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
KERNEL = "kernels/ladder/33_f16_persistent.cu"
SIZE = {"m": 512, "n": 512, "k": 128}
COMMAND = ["explain", "--device", "sim", "--type", "f16", "--kernel", "ladder/f16_persistent",
           *(f"-{name}{value}" for name, value in SIZE.items())]

COLOURS = ("#9ecae1", "#fdae6b", "#a1d99b", "#bcbddc")
WIDTH, HEIGHT, PANEL = 1020, 700, 320

# What the simulator says: a name, and where it stands in the output of `tegula explain`.
FACTS = {
    "blocks": r"launch +(\d+) x 1 x 1 blocks",
    "threads": r"blocks of (\d+) threads",
    "cluster": r"in clusters of (\d+)",
    "loaded": r"TMA loads .* (\d+) bytes",
    "shared_with": r"multicast +(\d+) bytes",
    "stores": r"shared stores +(\d+) requests",
    "wavefronts": r"shared stores .* (\d+) wavefronts",
    "conflicts": r"shared stores .* (\d+) conflicts",
    "wgmma": r"wgmma +(\d+) requests",
    "stored": r"by TMA .* (\d+) bytes",
}


def facts_of(text):
    """The numbers of a text that `tegula explain` has printed."""
    found = {}
    for name, pattern in FACTS.items():
        match = re.search(pattern, text)
        if match is None:
            sys.exit(f"`tegula explain` does not say \"{name}\":\n{text}")
        found[name] = int(match[1])
    return found


def tile_of(source):
    """BM, BN and BK of the kernel."""
    return {name: int(re.search(rf"^#define {name} +(\d+)", source, re.M)[1]) for name in ("BM", "BN", "BK")}


def box(x, y, width, height, colour="none"):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
            'stroke="#444" stroke-width="0.7"/>')


def words(x, y, text, size=12, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{text}</text>'


def panel(number, title, lines, drawing):
    """One of six panels: its title, what it draws at the origin, and lines of text below."""
    x, y = 20 + number % 3 * (PANEL + 15), 20 + number // 3 * 340
    text = [words(0, 12, f"{number + 1}. {title}", 15)]
    text += [words(0, 268 + i * 17, line) for i, line in enumerate(lines)]
    return f'<g transform="translate({x},{y})">' + "".join(text + [f'<g transform="translate(0,26)">{drawing}</g>']) + "</g>"


def draw_grid(facts, tile):
    """C: each cluster has a colour."""
    scale = 220 / SIZE["m"]
    parts = []
    for row in range(SIZE["m"] // tile["BM"]):
        for col in range(SIZE["n"] // tile["BN"]):
            cluster = row // facts["cluster"] + col * (SIZE["m"] // tile["BM"] // facts["cluster"])
            parts.append(box(col * tile["BN"] * scale, row * tile["BM"] * scale, tile["BN"] * scale, tile["BM"] * scale,
                             COLOURS[cluster % len(COLOURS)]))
    return "".join(parts)


def draw_cluster(facts, tile):
    parts = [box(70, 0, 200, 40, COLOURS[3]), words(170, 25, f"B, {tile['BK']} x {tile['BN']}: half from each block", 11, "middle")]
    for i in range(facts["cluster"]):
        y = 50 + i * 88
        parts += [box(0, y, 60, 80, COLOURS[2]), words(30, y + 44, f"A {i}", 11, "middle"),
                  box(70, y, 200, 80, COLOURS[0]), words(170, y + 44, f"block {i}: {tile['BM']} x {tile['BN']} of C", 11, "middle")]
    return "".join(parts)


def draw_block(facts, tile):
    groups = facts["threads"] // 128
    parts = []
    for i in range(groups - 1):
        parts += [box(0, i * 75, 270, 65, COLOURS[i]), words(135, i * 75 + 36, f"consumer {i}: 64 x {tile['BN']} of C by wgmma", 11, "middle")]
    y = (groups - 1) * 75
    return "".join(parts + [box(0, y, 270, 65, "#eeeeee"), words(135, y + 36, "producer: requests tiles by TMA", 11, "middle")])


def draw_warp(_, tile):
    """The 16 rows of a warp, in pieces of 8 columns; lane 5 has colour."""
    parts = []
    for i in range(4):
        for row in range(16):
            for pair in range(4):
                lane = row % 8 * 4 + pair
                parts.append(box(i * 68 + pair * 16, row * 13, 16, 13, COLOURS[1] if lane == 5 else "none"))
    return "".join(parts) + words(0, 224, f"columns 0 to 31 of {tile['BN']}; two elements a cell", 11)


def draw_tile(_, tile):
    parts = []
    for row in range(16):
        for chunk in range(8):
            place = chunk ^ row % 8
            parts += [box(place * 34, row * 13, 34, 13, COLOURS[chunk % 4] if chunk < 4 else "none"),
                      words(place * 34 + 17, row * 13 + 10, str(chunk), 9, "middle")]
    return "".join(parts) + words(0, 224, f"rows 0 to 15; a row is {tile['BK']} elements, 8 chunks of 16 bytes", 11)


def draw_banks(*_):
    """Where chunk 0 of eight rows lies: each row has all 32 banks."""
    parts = []
    for row in range(8):
        for bank in range(32):
            parts.append(box(bank * 8.5, row * 26, 8.5, 26, COLOURS[0] if bank // 4 == row % 8 else "none"))
    return "".join(parts) + words(0, 224, "32 banks of 4 bytes; chunk 0 of rows 0 to 7", 11)


def draw(facts, tile):
    clusters = facts["blocks"] // facts["cluster"]
    panels = [
        ("grid", [f"C is {SIZE['m']} x {SIZE['n']}: {facts['blocks']} blocks,",
                  f"{clusters} clusters, a colour each"], draw_grid),
        ("cluster", [f"TMA loads {facts['loaded']} bytes in all; multicast gives",
                     f"{facts['shared_with']} of them to the other block, too"], draw_cluster),
        ("block", [f"{facts['threads']} threads are {facts['threads'] // 128} warpgroups;",
                   f"{facts['wgmma']} requests of wgmma by all of them"], draw_block),
        ("warp", ["16 rows of C. Cells of lane 5 are coloured:", "its sums are in rows 1 and 9"], draw_warp),
        ("tile in shared memory", ["TMA's swizzle: chunk c of row r is", "at the place c XOR r % 8"], draw_tile),
        ("banks", [f"{facts['stores']} stores of results: {facts['wavefronts']} wavefronts,",
                   f"{facts['conflicts']} bank conflicts; TMA stores {facts['stored']} bytes"], draw_banks),
    ]
    body = "\n".join(panel(i, title, lines, function(facts, tile)) for i, (title, lines, function) in enumerate(panels))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n')


def main():
    program, output = sys.argv[1:]
    text = subprocess.run([program, *COMMAND], capture_output=True, text=True, check=True).stdout
    with open(os.path.join(ROOT, KERNEL), encoding="utf-8") as file:
        tile = tile_of(file.read())
    with open(output, "w", encoding="utf-8") as file:
        file.write(draw(facts_of(text), tile))


if __name__ == "__main__":
    main()
