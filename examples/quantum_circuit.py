#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A quantum circuit of dense two-qubit gates, by matrix products of NumPy or PyTorch.

The state of q qubits is a vector of 2^q complex numbers. A gate on its two leading qubits is the
product G S of a 4 x 4 matrix G and the state, stored as a 4 x 2^(q - 2) matrix S. The program
computes the transposed product S^T G^T, which has the same elements. In it the two qubits are the
last ones, so that the qubits of the next gate are the leading ones. With --block B the gates of B
neighbouring qubits are first multiplied to one 2^B x 2^B matrix, as simulators do ("gate fusion").
The products with the state are then larger.

The program itself does not use Tegula. With a drop-in library, Tegula computes its products:

    python3 examples/quantum_circuit.py
    LD_PRELOAD=build/libtegula_blas.so python3 examples/quantum_circuit.py
    LD_PRELOAD=build/libtegula_cublas.so python3 examples/quantum_circuit.py --cuda --block 10
"""
import argparse
import time
from typing import Any

import numpy as np


def random_gates(count: int, rng: np.random.Generator) -> np.ndarray:
    """Random unitary 4 x 4 matrices."""
    parts = rng.standard_normal((2, count, 4, 4))
    return np.linalg.qr(parts[0] + 1j * parts[1])[0]


def first_qubit_last(u: np.ndarray) -> np.ndarray:
    """The rows of u, renumbered: the leading qubit of their numbers becomes the last."""
    size = len(u)
    return u.reshape(2, size // 2, size).swapaxes(0, 1).reshape(size, size)


def block_of(qubits: int, rng: np.random.Generator) -> np.ndarray:
    """The matrix of `qubits` layers; with 2 qubits, of a single gate. A layer has a gate on qubits 0
    and 1, 2 and 3, and so on; the pairs of the next layer are shifted by one qubit."""
    if qubits == 2:
        return random_gates(1, rng)[0]
    u = np.eye(2**qubits, dtype=np.complex128)
    for _ in range(qubits):
        layer = np.eye(1)
        for gate in random_gates(qubits // 2, rng):
            layer = np.kron(layer, gate)
        u = first_qubit_last(layer @ u)
    return u


def run(blocks: list[Any], state: Any, rounds: int) -> Any:
    """Applies the blocks in turn, each to the qubits behind those of the block before."""
    for _ in range(rounds):
        for u in blocks:
            state = (state.reshape(u.shape[0], -1).T @ u.T).reshape(-1)
    return state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--qubits", type=int, default=20)
    parser.add_argument("--block", type=int, default=2, help="qubits of a block, even (2)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--double", action="store_true", help="complex128")
    parser.add_argument("--cuda", action="store_true", help="by PyTorch on a GPU")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    kind = np.complex128 if args.double else np.complex64
    blocks: list[Any] = [block_of(args.block, rng).astype(kind) for _ in range(args.qubits // 2)]
    state: Any = np.zeros(2**args.qubits, kind)
    state[0] = 1
    if args.cuda:
        import torch

        blocks = [torch.from_numpy(u).cuda() for u in blocks]
        state = torch.from_numpy(state).cuda()
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        result = run(blocks, state, args.rounds)
        if args.cuda:
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    products = len(blocks) * args.rounds
    flops = 8.0 * 2**args.qubits * 2**args.block * products
    final = result.cpu().numpy() if args.cuda else result
    norm = float(np.sum(np.abs(final.astype(np.complex128)) ** 2))
    sample = final[len(final) // 3]
    print(f"{products} products, {1e3 * best:.1f} ms, {1e-9 * flops / best:.1f} GFLOP/s; "
          f"norm {norm:.5f}, an amplitude {sample.real:.3e}{sample.imag:+.3e}j")
    if abs(norm - 1) > (1e-9 if args.double else 1e-3):
        raise SystemExit("the norm of the state is not 1")


if __name__ == "__main__":
    main()
