# SPDX-License-Identifier: Apache-2.0
"""The rows and the file of bench/dist_table.py, without PyTorch and GPUs."""
import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
import types
from unittest import mock


class Anything(types.ModuleType):
    """A module in which every name exists and can be called."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __call__(self, *_, **__):
        return Anything("result")


sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../bench"))
for module in ("torch", "torch.distributed", "torch.multiprocessing", "tegula", "tegula.dist"):
    sys.modules[module] = Anything(module)
sys.modules["torch"].__version__ = "0"
import dist_table as table  # noqa: E402

# Weak scaling: whatever the number of ranks, each has the same work and number of rows.
one, *more = ([case for case in table.cases(False, ranks) if case.name == "weak"] for ranks in (1, 2, 4, 8))
assert len(one) == 3
for ranks, rows in zip((2, 4, 8), more):
    for alone, case in zip(one, rows):
        assert case.m == ranks * alone.m and case[3:] == alone[3:] and case.kind == alone.kind, case
        assert case.m * case.n * case.k == ranks * alone.m * alone.n * alone.k

# Two numbers of GPUs in one file.
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as text:
    options = argparse.Namespace(csv=os.path.join(folder, "a.csv"), gpus=[2, 4], quick=True, only=["weak"], seconds=0,
                                 end=time.monotonic() + 60)
    times = dict.fromkeys((*table.TIMES, "one_gpu"), 0.5) | {"tegula": 0.625}
    with mock.patch.object(table, "measure", lambda *_: times), \
            mock.patch.object(table.results_csv, "origin", lambda: "# origin\n"):
        for gpus in options.gpus:
            table.run_table(types.SimpleNamespace(rank=0, ranks=gpus, figures=lambda: {"panels": 2}), options, True)
    written = table.results_csv.rows(options.csv)
assert [row["gpus"] for row in written] == ["2"] * 3 + ["4"] * 3, written
assert all(float(row["one_gpu"]) == 0.5 and float(row["tegula"]) == 0.625 for row in written), written
assert text.getvalue().count(" 2   80\n") == 6, text.getvalue()
