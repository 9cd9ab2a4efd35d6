# SPDX-License-Identifier: Apache-2.0
"""bench() and ladder(), which return measurements as rows of a table."""

import math
import statistics
import time
from ctypes import byref, c_double, c_void_p
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._checks import integer, number
from ._devices import Device, DeviceArray, device as open_device
from ._library import UnsupportedError, check, lib
from ._matmul import Place, Plan, plan as make_plan

Size = Union[int, Tuple[int, int, int]]

_SAMPLE_SECONDS = 2e-3  # duration of a sample, far above the resolution of the clocks


class Table(List[Dict[str, Any]]):
    """A list of rows, each a dict with the same keys. pandas.DataFrame() accepts it."""

    def __init__(self, rows: Iterable[Dict[str, Any]], x: str, y: Sequence[str]) -> None:
        super().__init__(rows)
        self.x = x
        self.y = tuple(y)

    def __str__(self) -> str:
        if not self:
            return "(no rows)"
        lines = [list(self[0])] + [[_short(value) for value in row.values()] for row in self]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(map(str.rjust, line, widths)).rstrip() for line in lines)

    def plot(self, *y: str, ax: Any = None) -> Any:
        """Draws the columns y over the column x and returns the matplotlib axes."""
        if ax is None:
            from matplotlib import pyplot
            ax = pyplot.subplots()[1]
        for name in y or self.y:
            ax.plot([str(row[self.x]) for row in self], [row[name] for row in self], "o-",
                    label=name)
        ax.set_xlabel(self.x)
        ax.tick_params(axis="x", rotation=45)
        ax.legend()
        return ax


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _sizes(size: Size) -> Tuple[int, int, int]:
    try:
        m, n, k = size if isinstance(size, (tuple, list)) else (size, size, size)
        return integer("size", m, 1), integer("size", n, 1), integer("size", k, 1)
    except (TypeError, ValueError):
        pass
    raise (ValueError if _is_integers(size) else TypeError)(
        f"size is {size!r}; it must be a positive integer n, for n x n x n, or (m, n, k)")


def _is_integers(size: Any) -> bool:
    return all(isinstance(x, int) for x in (size if isinstance(size, (tuple, list)) else (size,)))


def _factors(m: int, n: int, k: int, dtype: np.dtype) -> Tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    scale = 127 if dtype == np.int8 else 1
    return (random.uniform(-scale, scale, (m, k)).astype(dtype),
            random.uniform(-scale, scale, (k, n)).astype(dtype))


def _on_host(array: Any) -> np.ndarray:
    return array.numpy() if isinstance(array, DeviceArray) else np.asarray(array)


def _device_seconds(dev: Device, call: Callable[[], Any], calls: int) -> float:
    """The mean time of a call in seconds, measured with the device's timer."""
    timer, seconds = c_void_p(), c_double()
    check(lib.tgl_timer_create(dev.handle, byref(timer)))
    try:
        check(lib.tgl_timer_start(timer, None))
        for _ in range(calls):
            call()
        check(lib.tgl_timer_stop(timer, None, byref(seconds)))
    finally:
        lib.tgl_timer_destroy(timer)
    return seconds.value / calls


def _medians(dev: Device, calls: Sequence[Callable[[], Any]], seconds: float) -> List[float]:
    """The median time of each of the calls, which are timed in turn."""
    repeats = []
    for call in calls:
        call()  # warms up
        once = max(_device_seconds(dev, call, 1), 1e-7)
        repeats.append(math.ceil(_SAMPLE_SECONDS / once))
    samples: List[List[float]] = [[] for _ in calls]
    end = time.monotonic() + seconds
    while len(samples[0]) < 3 or time.monotonic() < end:
        for call, count, times in zip(calls, repeats, samples):
            times.append(_device_seconds(dev, call, count))
    return [statistics.median(times) for times in samples]


def _bench_row(dev: Device, size: Tuple[int, int, int], dtype: np.dtype, compute: str,
               kernel: Optional[str], seconds: float) -> Dict[str, Any]:
    m, n, k = size
    host_a, host_b = _factors(m, n, k, dtype)
    host_out = np.zeros((m, n), np.int32 if dtype == np.int8 else dtype)
    a, b, out = dev.array(host_a), dev.array(host_b), dev.array(host_out)
    planned = make_plan(a, b, out, compute=compute, kernel=kernel, device=dev)
    calls: List[Callable[[], Any]] = [lambda: planned(a, b, out)]
    if dev.name == "cpu":
        calls.append(lambda: np.matmul(host_a, host_b, out=host_out, dtype=host_out.dtype))
    times = _medians(dev, calls, seconds)
    row = {"device": dev.name, "size": f"{m}x{n}x{k}", "dtype": dtype.name, "m": m, "n": n, "k": k,
           "kernel": planned.kernel}
    for prefix, each in zip(("", "numpy_"), times):
        row[prefix + "seconds"] = each
        row[prefix + "gflops"] = 2e-9 * m * n * k / each
    return row


def bench(sizes: Iterable[Size] = (256, 512, 1024, 2048), *, dtype: Any = np.float32,
          device: Place = "auto", compute: str = "default", kernel: Optional[str] = None,
          seconds: float = 0.5) -> Table:
    """Times products of random matrices. On the CPU, numpy.matmul() is timed in turn with them.

    sizes: a list of n for n x n x n, or (m, n, k). seconds: the time for the samples of a row, of which
    there are at least three. A plan is made first; the times are medians of its calls from Python.
    `tegula bench` compares with other libraries.
    """
    if isinstance(sizes, (str, int)):
        raise TypeError(f"sizes is {sizes!r}; it must be a list, such as [256, (16, 4096, 4096)]")
    all_sizes = [_sizes(size) for size in sizes]
    seconds = number("seconds", seconds)
    dev = device if isinstance(device, Device) else open_device(device or "auto")
    rows = [_bench_row(dev, size, np.dtype(dtype), compute, kernel, seconds)
            for size in all_sizes]
    return Table(rows, "size", ["gflops"] + ["numpy_gflops"] * (dev.name == "cpu"))


# For each chapter of the ladder (the teaching kernels): the prefix of its kernels' names, the element
# type and the compute mode. A kernel of the ladder is called a rung.
_CHAPTERS = {1: ("", np.float32, "default"), 2: ("f16_", np.float16, "default"),
             3: ("words_", np.float32, "tf32")}


def _chapter(name: str) -> int:
    """The chapter of a rung. Chapter 1 has all rungs without the prefix of another chapter."""
    return next((c for c in (2, 3) if name.startswith(_CHAPTERS[c][0])), 1)


def _rung(planned: Plan, name: str, a: Any, b: Any, exact: np.ndarray,
          bound: np.ndarray) -> Dict[str, Any]:
    """Runs a rung of the ladder, on sim once, else also for its time. Its error is in units of 2^-24 |A||B|;
    the error of rounding the result to f16 is subtracted."""
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    dev = planned.device
    out = dev.array(np.full((m, n), np.nan, a.dtype))
    planned(a, b, out)
    result = _on_host(out)
    rounding = np.spacing(np.abs(result)) / 2.0 if result.dtype == np.float16 else 0.0
    error = np.fmax(np.abs(result - exact) - rounding, 0.0) / (2.0**-24 * bound)
    row = {"rung": name, "m": m, "n": n, "k": k, "max_error": float(error.max())}
    if dev.name == "sim":
        return {**row, **planned.counters()}
    seconds = _medians(dev, [lambda: planned(a, b, out)], 0.1)[0]
    return {**row, "seconds": seconds, "gflops": 2e-9 * m * n * k / seconds}


def ladder(size: Size = 128, *, device: Place = "sim", chapter: int = 1) -> Table:
    """Runs the teaching kernels of a chapter and returns a row for each. Chapter 1 has f32 kernels from a
    naive one up, chapter 2 f16 on tensor cores, chapter 3 f32 by products of TF32 on tensor cores.

    On "sim" a row has the counts of tgl_counters: requests, sectors, wavefronts, bank conflicts. On
    a GPU it has times. max_error is in units of 2^-24 |A||B|. docs/ladder.md describes the kernels.
    """
    m, n, k = _sizes(size)
    if not isinstance(chapter, int) or chapter not in _CHAPTERS:
        raise ValueError(f"chapter is {chapter!r}; it must be 1, 2 or 3")
    dev = device if isinstance(device, Device) else open_device(device or "sim")
    _, dtype, compute = _CHAPTERS[chapter]
    host_a, host_b = _factors(m, n, k, np.dtype(dtype))
    exact = host_a.astype(np.float64) @ host_b.astype(np.float64)
    bound = np.abs(host_a).astype(np.float64) @ np.abs(host_b).astype(np.float64)
    a, b = dev.array(host_a), dev.array(host_b)
    rows = []
    for kernel in dev.kernels():
        family, _, name = kernel.partition("/")
        if family != "ladder" or _chapter(name) != chapter:
            continue
        try:
            planned = make_plan(a, b, device=dev, kernel=kernel, compute=compute)
        except UnsupportedError:  # some rungs need certain sizes or a certain chip
            continue
        rows.append(_rung(planned, name, a, b, exact, bound))
    y = ["global_load_sectors", "shared_load_conflicts"] if dev.name == "sim" else ["gflops"]
    return Table(rows, "rung", y)
