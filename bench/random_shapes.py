#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a suite of random products, for `tegula bench --suite`. Another seed gives shapes for which
nothing was tuned.

    bench/random_shapes.py SEED [--rounds 5] [--types bf16,f16,tf32,f64,f32] [--classes aligned,odd,...] > SUITE

A round draws one shape of each class below for each type. Edges of aligned classes are multiples of 8. Sizes are
log-uniform between the limits that follow; a batch has at most 2^22 elements of C.
"""

import argparse
import math
import random
from typing import Callable, Dict, List, Tuple

Shape = Tuple[int, int, int, int]  # m, n, k, batch

# n and k of layers of language models
LAYERS = [(768, 3072), (3072, 768), (2880, 2880), (4096, 4096), (6144, 4096), (4096, 14336), (28672, 4096),
          (8192, 8192), (12288, 5120), (3584, 18944), (32000, 4096)]


class Draw:
    """Random sizes from one generator."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def size(self, low: int, high: int, multiple: int = 1) -> int:
        value = math.exp(self.random.uniform(math.log(low), math.log(high)))
        return max(multiple, round(value / multiple) * multiple)

    def aligned(self) -> Shape:
        return self.size(96, 4096, 8), self.size(96, 4096, 8), self.size(192, 8192, 8), 1

    def small_aligned(self) -> Shape:
        return self.size(96, 1024, 8), self.size(96, 1024, 8), self.size(192, 4096, 8), 1

    def odd(self) -> Shape:
        return self.size(160, 4096), self.size(160, 4096), self.size(128, 4096), 1

    def batch(self) -> Shape:
        m, n, k = self.size(8, 180), self.size(8, 180), self.size(8, 180)
        return m, n, k, self.size(48, max(49, min(4000, 2**22 // (m * n))))

    def waves(self) -> Shape:
        return self.size(1536, 6656, 8), self.size(1536, 6656, 8), self.size(256, 1500, 8), 1

    def layer(self) -> Shape:
        n, k = self.random.choice(LAYERS)
        return self.size(3, 1024), n, k, 1

    def deep(self) -> Shape:
        return self.size(24, 200), self.size(24, 200), self.size(5000, 60000), 1

    def thin(self) -> Shape:
        sizes = [self.size(2, 40), self.size(400, 8192)]
        self.random.shuffle(sizes)
        return sizes[0], sizes[1], self.size(160, 4096), 1


CLASSES: Dict[str, Callable[[Draw], Shape]] = {
    "aligned": Draw.aligned, "odd": Draw.odd, "batch": Draw.batch, "waves": Draw.waves, "layer": Draw.layer,
    "deep": Draw.deep, "thin": Draw.thin, "small_aligned": Draw.small_aligned}


def suite(seed: int, rounds: int, types: List[str], classes: List[str]) -> List[str]:
    draw = Draw(seed)
    lines = []
    for _ in range(rounds):
        for name in classes:
            for type_name in types:
                m, n, k, batch = CLASSES[name](draw)
                layout = draw.random.choice(("NN", "NT", "TN", "TT"))
                lines.append(f"{type_name},{m},{n},{k},{layout},{batch}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--types", default="bf16,f16,tf32,f64,f32")
    parser.add_argument("--classes", default=",".join(CLASSES), help="some of the classes")
    options = parser.parse_args()
    print(f"# bench/random_shapes.py {options.seed} --rounds {options.rounds}: type,m,n,k,layout,batch")
    print("\n".join(suite(options.seed, options.rounds, options.types.split(","), options.classes.split(","))))


if __name__ == "__main__":
    main()
