# SPDX-License-Identifier: Apache-2.0
"""test_dist_program.py TEGULA MPIEXEC: `tegula explain --ranks`; with MPI also `tegula dist`, whose products
are those of NumPy. MPIEXEC is empty in a build without MPI."""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

tegula, mpiexec = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""


def run(*arguments, ranks=0, status=0):
    command = [] if arguments[:1] == ("explain",) else ["dist"]
    command = ([mpiexec, "-n", str(ranks)] if ranks else []) + [tegula] + command + [str(x) for x in arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode == 0) == (status == 0), (command, done.stdout, done.stderr)
    if status and not ranks:
        assert done.returncode == status, (command, done.returncode, done.stderr)
    return done.stdout + done.stderr


sizes = ["-m", 2000, "-n", 1000, "-k", 30000]
text = run("explain", "--type", "f64", "--ranks", 2, *sizes)
assert "1 x 1 x 2 parts" in text and "stays        AB" in text, text
text = run("explain", "--ranks", 4096, "-m", 65536, "-n", 65536, "-k", 65536, "--layouts", "64x64:64,64x64:64,64x64:64")
assert "64 x 64 x 1 parts" in text and "stays        C" in text, text
assert "FLOP/s modelled, not measured; bandwidth modelled, not measured; latency modelled, not measured\n" in text, text
# Of 4093 ranks, one has no work.
text = run("explain", "--ranks", 4093, "-m", 65536, "-n", 65536, "-k", 65536, "--bandwidth", "1e12", "--latency", 1e-7)
assert "FLOP/s modelled, not measured; bandwidth given by the caller; latency given" in text, text
assert 95 <= int(re.search(r"^efficiency +(\d+) % of 4093 ranks", text, re.M)[1]) < 100, text
# All-gather + GEMM, and GEMM + all-reduce.
text = run("explain", "--ranks", 4, "-m", 4096, "-n", 8192, "-k", 8192, "--layouts", "rows,columns,columns")
assert "1 x 4 x 1 parts" in text and "stays        BC" in text and "along m" in text, text
text = run("explain", "--ranks", 4, "-m", 4096, "-n", 8192, "-k", 8192, "--layouts", "columns,rows,copy")
assert "1 x 1 x 4 parts" in text and "stays        AB" in text, text
for wrong in ([], ["explain", *sizes, "--layouts", "rows,rows,rows"], ["explain", *sizes, "--ranks", 2, "--chip", "h200"],
              ["explain", "--ranks", 2, "-m", 1], ["nothing"], ["mm", "A.npy"],
              ["explain", "--ranks", 2, *sizes, "--layouts", "rows,rows"],
              ["explain", "--ranks", 2, *sizes, "--layouts", "rows,rows,2x2:64"],
              ["explain", "--ranks", 2, *sizes, "--layouts", "rows,rows,1x2:0"]):
    assert "--help" in run(*wrong, status=2)
# `--gpus 2` on a machine without a GPU.
os.environ["TEGULA_LIBCUDA"] = "/nonexistent/libcuda.so"
text = run("bench", "--gpus", 2, "-m", 4, "-n", 4, "-k", 4, status=1)
assert "cannot open the device \"cuda:" in text, text
del os.environ["TEGULA_LIBCUDA"]
if not mpiexec:
    sys.exit(0)

text = run("bench", "-m", 300, "-n", 200, "-k", 500, "--repeats", 2, "--threads", 1, ranks=3)
assert text.count("bound MB") == 1 and "on 3 ranks" in text, text
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    random = np.random.default_rng(1)
    for m, k, n, kind in ((97, 31, 53, np.float64), (2, 64, 7, np.float32), (40, 10, 20, np.int8)):
        a, b = (random.integers(-4, 5, shape).astype(kind) for shape in ((m, k), (k, n)))
        np.save("A.npy", a)
        np.save("B.npy", b)
        run("mm", "A.npy", "B.npy", "-o", "C.npy", "--threads", 1, ranks=3)
        result = np.load("C.npy")
        wide = np.int32 if kind == np.int8 else kind
        assert result.dtype == wide and (result == a.astype(wide) @ b.astype(wide)).all()
    run("mm", "A.npy", "A.npy", "-o", "C.npy", ranks=2, status=1)
