# SPDX-License-Identifier: Apache-2.0
"""tegula.dist on the replacements of the CUDA driver and of NCCL. The ranks are threads, or
processes where one is killed."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from contextlib import nullcontext
from typing import NamedTuple
from unittest import mock

import numpy as np
from stand_ins import CudaArray, Tensor, fake_torch, is_replaced

import tegula

RANKS = 2


class Group:
    """What tegula.dist uses of an mpi4py communicator."""

    box: dict = {}
    barrier = threading.Barrier(RANKS)

    def __init__(self, rank):
        self.rank = rank

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return RANKS

    def allgather(self, value):
        self.box[self.rank] = value
        self.barrier.wait()
        values = [self.box[rank] for rank in range(RANKS)]
        self.barrier.wait()
        return values


class Part(CudaArray):
    """An array on the GPU of a rank."""

    def __init__(self, x, rank):
        super().__init__(x)
        self.rank = rank

    def __dlpack_device__(self):
        return 2, self.rank


class Place(NamedTuple):
    """Stands in for torch.device."""

    type: str
    index: int


def tensor_of(x, rank, index=None, **options):
    made = Tensor(x, "cuda", **options)
    made.device = Place("cuda", rank if index is None else index)
    return made


def numbers(rows, columns, seed):
    return np.random.default_rng(seed).integers(-2, 3, (rows, columns)).astype(np.float32)


def rows_of(x, rank):
    return np.ascontiguousarray(np.split(x, RANKS)[rank])


def columns_of(x, rank):
    return np.ascontiguousarray(np.split(x, RANKS, 1)[rank])


@unittest.skipUnless(is_replaced() and os.environ.get("TEGULA_LIBNCCL"),
                     "needs the replacements of the CUDA driver and of NCCL")
class Dist(unittest.TestCase):
    def on_ranks(self, function):
        """Runs function(communicator, rank) on all ranks."""
        import tegula.dist
        failures = []

        def run(rank):
            try:
                with tegula.dist.Communicator(Group(rank), place=f"cuda:{rank}", timeout=10) as comm:
                    function(comm, rank)
            except BaseException as error:  # of another thread: for the test's own
                failures.append(error)
        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(RANKS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def test_layers(self):
        a, b, bias = numbers(64, 32, 1), numbers(32, 48, 2), numbers(1, 48, 3)[0]
        whole = a @ b

        def layers(comm, rank):
            out = np.zeros((64, 24), np.float32)
            comm.all_gather_matmul(Part(rows_of(a, rank), rank), Part(columns_of(b, rank), rank),
                                   bias=Part(columns_of(bias[None], rank)[0], rank),
                                   out=Part(out, rank))
            comm.synchronize()
            np.testing.assert_array_equal(out, columns_of(whole + bias, rank))
            self.assertEqual(comm.figures()["parts_n"], RANKS)
            x, y = Part(columns_of(a, rank), rank), Part(rows_of(b, rank), rank)
            out = np.ones((32, 48), np.float32)
            comm.matmul_reduce_scatter(x, y, alpha=2, beta=1, out=Part(out, rank))
            comm.synchronize()
            np.testing.assert_array_equal(out, rows_of(2 * whole + 1, rank))
            out = np.zeros((64, 48), np.float32)
            comm.matmul_all_reduce(x, y, out=Part(out, rank))
            comm.synchronize()
            np.testing.assert_array_equal(out, whole)
        self.on_ranks(layers)

    def test_tensors_again(self):
        """Tensors with known properties are not described again; another property of a tensor is noticed."""
        import tegula.dist
        torch = fake_torch(0)
        torch.cuda.current_device = lambda: 0
        torch.cuda.is_current_stream_capturing = lambda: False
        torch.cuda.device = nullcontext
        describe, described = tegula.dist.Communicator._describe, []

        def count(comm, *arguments):
            described.append(comm.rank)
            return describe(comm, *arguments)

        def products(comm, rank):
            def product(seed, rows=64, **options):
                a, b, bias = numbers(rows, 32, seed), numbers(32, 48, seed + 1), numbers(1, 48, seed + 2)
                out = np.zeros((rows, 24), np.float32)
                comm.all_gather_matmul(tensor_of(rows_of(a, rank), rank, **options),
                                       tensor_of(columns_of(b, rank), rank),
                                       bias=tensor_of(columns_of(bias, rank)[0], rank),
                                       out=tensor_of(out, rank))
                comm.synchronize()
                np.testing.assert_array_equal(out, columns_of(a @ b + bias, rank))
                return described.count(rank)
            self.assertEqual([product(1), product(5), product(9, 32), product(11)], [1, 1, 2, 2])
            with self.assertRaisesRegex(ValueError, "requires a gradient"):
                product(1, requires_grad=True)
            self.assertEqual(product(1), 3)
            comm._forget(next(iter(comm._plans)))
            comm._forget(next(iter(comm._plans)))
            self.assertEqual([product(1), product(5)], [4, 4])
            with self.assertRaisesRegex(ValueError, "an array is on cuda:7"):
                product(1, index=7)
        with mock.patch.dict(sys.modules, torch=torch), \
                mock.patch.object(tegula.dist.Communicator, "_describe", count):
            self.on_ranks(products)

    def test_old_plans_go(self):
        a, b = numbers(64, 32, 1), numbers(32, 48, 2)

        def many(comm, rank):
            for tokens in (64, 32, 16, 64, 32):
                out = np.zeros((tokens, 24), np.float32)
                comm.all_gather_matmul(Part(rows_of(a[:tokens], rank), rank), Part(columns_of(b, rank), rank),
                                       out=Part(out, rank))
                comm.synchronize()
                np.testing.assert_array_equal(out, columns_of(a[:tokens] @ b, rank))
                self.assertLessEqual(len(comm._plans), 2)
        with mock.patch("tegula.dist.PLANS_MAX", 2):
            self.on_ranks(many)

    def test_strides(self):
        b = numbers(32, 48, 2)

        def wrong(comm, rank):
            x, y = rows_of(numbers(64, 32, 1), rank), Part(columns_of(b, rank), rank)
            for bad in (x[::-1], np.broadcast_to(x[0], x.shape)):
                with self.assertRaisesRegex(ValueError, "overlap or go backwards"):
                    comm.all_gather_matmul(Part(bad, rank), y, out=Part(np.zeros((64, 24), np.float32), rank))
            with self.assertRaisesRegex(ValueError, "bias must be contiguous"):
                comm.all_gather_matmul(Part(x, rank), y, bias=Part(np.zeros(48, np.float32)[::2], rank),
                                       out=Part(np.zeros((64, 24), np.float32), rank))
        self.on_ranks(wrong)

    def test_transposed(self):
        a, b = numbers(64, 32, 1), numbers(32, 48, 2)

        def linear(comm, rank):  # a weight is stored as PyTorch does
            weight = rows_of(np.ascontiguousarray(b.T), rank)
            out = np.zeros((64, 24), np.float32)
            comm.all_gather_matmul(Part(rows_of(a, rank), rank), Part(weight.T, rank),
                                   out=Part(out, rank))
            comm.synchronize()
            np.testing.assert_array_equal(out, columns_of(a @ b, rank))
        self.on_ranks(linear)

    def test_errors(self):
        x = numbers(8, 8, 1)

        def wrong(comm, rank):
            part = Part(x, rank)
            with self.assertRaisesRegex(ValueError, "must be rows, columns or copy"):
                comm.matmul(part, part, ("rows", "row", "rows"), out=part)
            with self.assertRaisesRegex(ValueError, "a is 16 x 8 and b is 16 x 8"):
                comm.matmul(part, part, ("rows", "rows", "rows"), out=part)
            with self.assertRaisesRegex(ValueError, "beta is not 0"):
                comm.all_gather_matmul(part, part, beta=1)
            with self.assertRaisesRegex(ValueError, "on cpu"):
                comm.all_gather_matmul(x, part, out=part)
            with self.assertRaises(tegula.ArgumentError):  # C is 16 x 16
                comm.all_gather_matmul(part, part, out=part)
        self.on_ranks(wrong)

    def test_ranks_differ(self):
        """Leading dimensions may differ between ranks, other arguments may not: the ranks then raise
        the same error, also if some have a plan already, and the next product is right."""
        a, b = numbers(64, 32, 1), numbers(32, 48, 2)
        whole = a @ b

        def differ(comm, rank):
            x, y = Part(rows_of(a, rank), rank), Part(columns_of(b, rank), rank)

            def product(width):
                out = np.zeros((64, width), np.float32)[:, :24]
                comm.all_gather_matmul(x, y, out=Part(out, rank))
                comm.synchronize()
                np.testing.assert_array_equal(out, columns_of(whole, rank))
            for wide in (0, 1, 0, 2, 1):  # wide: the rank whose out has a larger leading dimension; 2: none
                product(24 + 8 * (rank == wide))
            for rows in (32, 16):  # of a on rank 1
                with self.assertRaisesRegex(tegula.ArgumentError, "m of the problem is 64 on rank 0, and"):
                    comm.all_gather_matmul(x if rank == 0 else Part(rows_of(a, rank)[:rows // 2], rank), y,
                                           out=Part(np.zeros((64 if rank == 0 else rows, 24), np.float32), rank))
            with self.assertRaisesRegex(ValueError if rank == 1 else tegula.ArgumentError,
                                        "1-D|shape" if rank == 1 else "rank 1"):
                comm.all_gather_matmul(x if rank == 0 else Part(np.zeros(3, np.float32), rank), y,
                                       out=Part(np.zeros((64, 24), np.float32), rank))
            product(24)
        self.on_ranks(differ)

    def test_failures_of_runs(self):
        """A run that fails after it has begun is not repeated. If the ranks called differently, it
        is, with a new plan. The old one, of which a CUDA graph contains a run, is kept."""
        import tegula.dist
        a, b = numbers(64, 32, 1), numbers(32, 48, 2)
        library = tegula.dist._dist
        run = library.tgl_dist_plan_run
        failures = {rank: [] for rank in range(RANKS)}  # texts that the next runs of a rank fail with

        def fake_run(*arguments):
            left = failures[threading.current_thread().rank]
            if not left:
                return run(*arguments)
            library.tgl_dist_set_error(left.pop(0))
            return 1  # TGL_BAD_ARGUMENT

        def products(comm, rank):
            threading.current_thread().rank = rank

            def product():
                out = np.zeros((64, 24), np.float32)
                comm.all_gather_matmul(Part(rows_of(a, rank), rank), Part(columns_of(b, rank), rank),
                                       out=Part(out, rank))
                comm.synchronize()
                np.testing.assert_array_equal(out, columns_of(a @ b, rank))
                return comm._plans[list(comm._plans)[-1]]
            for _ in ("a new plan", "one that is there"):
                failures[rank].append(b"rank 0: the launch failed")
                with self.assertRaisesRegex(tegula.ArgumentError, "launch failed"):
                    product()
                self.assertEqual((failures[rank], comm._captured, len(comm._plans)), ([], [], 1))
            old = product()
            failures[rank].append(b"rank 0 runs plan 1, while rank 1 creates a plan")
            new = product()
            self.assertEqual(comm._captured, [old])
            self.assertIsNot(new, old)
        with mock.patch.object(library, "tgl_dist_plan_run", fake_run), \
                mock.patch.object(tegula.dist.Communicator, "_is_capturing", return_value=True):
            self.on_ranks(products)

    def test_killed_rank(self):
        """Rank 1 is killed. The processes cannot map each other's memory. The other rank gets an
        error within 10 seconds, and its device still works."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "FAKE_CUDA_FAIL": "cuIpcGetMemHandle=801", "FAKE_NCCL_FOLDER": folder}
            ranks = [subprocess.Popen([sys.executable, __file__, "--rank", str(rank), folder], env=environment)
                     for rank in range(RANKS)]
            codes = [rank.wait(timeout=60) for rank in ranks]
        self.assertEqual(codes, [0, -signal.SIGKILL])

    def test_no_gpu(self):
        """Rank 1 has no GPU: all ranks get the error of its device, at once."""
        import tegula.dist
        failures = [None] * RANKS

        def run(rank):
            try:
                tegula.dist.Communicator(Group(rank), place=("cuda:0", "cuda:99")[rank], timeout=20)
            except tegula.TegulaError as error:
                failures[rank] = error
        start = time.monotonic()
        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(RANKS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual([error.status for error in failures], ["TGL_NO_DEVICE"] * RANKS)

    def test_closed(self):
        import tegula.dist
        closed = []
        self.on_ranks(lambda comm, rank: closed.append(comm))
        with self.assertRaisesRegex(ValueError, "closed"):
            closed[0].synchronize()
        with self.assertRaisesRegex(ValueError, "engine"):
            tegula.dist.Communicator(Group(0), engine="fast")


class FileGroup(Group):
    """A rank that is a process of its own."""

    def __init__(self, rank, folder):
        super().__init__(rank)
        self.paths = [os.path.join(folder, f"value{other}") for other in range(RANKS)]

    def allgather(self, value):
        own = self.paths[self.rank]
        with open(own + ".part", "wb") as file:
            pickle.dump(value, file)
        os.rename(own + ".part", own)
        while not all(map(os.path.exists, self.paths)):
            time.sleep(0.01)
        values = []
        for path in self.paths:
            with open(path, "rb") as file:
                values.append(pickle.load(file))
        return values


def rank_to_kill(rank, folder):
    """What the process of one rank does: products, in the middle of which rank 1 is killed."""
    import tegula.dist
    comm = tegula.dist.Communicator(FileGroup(rank, folder), place=f"cuda:{rank}", timeout=1)
    a, b = numbers(64, 32, 1), numbers(32, 48, 2)
    x, y, z = (Part(part, rank) for part in (rows_of(a, rank), columns_of(b, rank), np.zeros((64, 24), np.float32)))
    for i in range(20):
        if i == 10 and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.monotonic()
        try:
            comm.all_gather_matmul(x, y, out=z)
            comm.synchronize()
        except tegula.TegulaError as error:
            assert i == 10 and error.status == "TGL_COMMUNICATION" and time.monotonic() - start < 10, error
            break
    else:
        sys.exit("no error")
    comm.close()
    whole = np.zeros((32, 24), np.float32)
    tegula.matmul(x, y, out=Part(whole, rank))
    np.testing.assert_array_equal(whole, rows_of(a, rank) @ columns_of(b, rank))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        rank_to_kill(int(sys.argv[2]), sys.argv[3])
    else:
        unittest.main()
