# SPDX-License-Identifier: Apache-2.0
"""Products of matrices that are distributed over processes: include/tegula/dist.h in Python.

    import tegula.dist
    comm = tegula.dist.Communicator()                # the ranks of torch.distributed, each with a GPU
    y = comm.all_gather_matmul(x, w)                 # x: this rank's rows, w: its columns
    z = comm.matmul_reduce_scatter(y, v)             # z: this rank's rows of the sum over ranks

    comm = tegula.dist.Communicator(mpi4py.MPI.COMM_WORLD)         # NumPy arrays; GPUs with place="cuda:0"

docs/distributed.md describes how the data moves.
"""

import ctypes
import importlib
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_ubyte, c_void_p
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, cast

import numpy as np

from ._arrays import Operand, describe
from ._devices import device
from ._library import (ACTIVATIONS, BIAS_COLUMN, BIAS_NONE, COMPUTE, NO_TRANS, TRANS, TYPE_NAMES,
                       ArgumentError, Epilogue, Problem, Sized, TegulaError, _error_class, lib, usual_result)

__all__ = ["Communicator"]

ID_BYTES = 128
ENGINES = {"auto": 0, "nccl": 1}
PLANS_MAX = 256  # maximum number of plans of a communicator, because each has buffers on the GPU


class _Layout(Sized):
    _fields_ = [("size", c_size_t)] + [(name, c_int64) for name in (
        "rows", "columns", "block_rows", "block_columns", "first_rows", "first_columns")] + [
            (name, c_int) for name in ("grid_rows", "grid_columns", "source_row",
                                       "source_column", "grid_order", "replicated")] + [
                                           ("ld", c_int64)]


class _Machine(Sized):
    _fields_ = [("size", c_size_t)] + [(name, c_double) for name in (
        "flops_per_s", "f32_rate", "half_rate", "operand_bytes_per_s", "product_s")] + [
            ("moves_alone", c_int)] + [(name, c_double) for name in (
                "bytes_per_s", "latency_s", "memory_per_s", "collective_s", "wave_elements")]


class _NcclOptions(Sized):
    _fields_ = [("size", c_size_t), ("comm", c_void_p), ("id", c_void_p), ("rank", c_int),
                ("ranks", c_int), ("stream", c_void_p), ("timeout_s", c_double),
                ("engine", c_int), ("machine", cast(Any, _Machine))]


class _MpiOptions(Sized):
    _fields_ = [("size", c_size_t), ("timeout_s", c_double), ("machine", cast(Any, _Machine))]


class _Options(Sized):
    _fields_ = [("size", c_size_t), ("epilogue", POINTER(Epilogue)), ("memory_limit", c_int64),
                ("panel", c_int64), ("parts_m", c_int), ("parts_n", c_int), ("parts_k", c_int)]


class _Figures(Sized):
    _fields_ = [("size", c_size_t), ("parts_m", c_int), ("parts_n", c_int), ("parts_k", c_int),
                ("panel", c_int64), ("panels", c_int64)] + [(name, c_double) for name in (
                    "received_bytes", "bound_bytes", "memory_bytes", "seconds", "local_seconds")]


_LAYOUT = (c_int, [POINTER(_Layout), c_size_t, c_int64, c_int64, c_int])
_FUNCTIONS: Dict[str, Tuple[Any, Sequence[Any]]] = {
    "tgl_dist_rows": _LAYOUT,
    "tgl_dist_columns": _LAYOUT,
    "tgl_dist_replicated": (c_int, _LAYOUT[1][:4]),
    "tgl_dist_local": (c_int, [POINTER(_Layout), c_int, POINTER(c_int64), POINTER(c_int64)]),
    "tgl_dist_close": (None, [c_void_p]),
    "tgl_dist_last_error": (c_size_t, [c_char_p, c_size_t]),
    "tgl_dist_synchronize": (c_int, [c_void_p]),
    "tgl_dist_set_stream": (c_int, [c_void_p, c_void_p]),
    "tgl_dist_nccl_id": (c_int, [POINTER(c_ubyte)]),
    "tgl_dist_open_nccl": (c_int, [POINTER(_NcclOptions), c_void_p, POINTER(c_void_p)]),
    "tgl_dist_plan_create": (c_int, [c_void_p, POINTER(Problem)] + [POINTER(_Layout)] * 3 +
                             [POINTER(_Options), POINTER(c_void_p)]),
    "tgl_dist_plan_destroy": (None, [c_void_p]),
    "tgl_dist_plan_run": (c_int, [c_void_p, c_double, c_void_p, c_void_p, c_double, c_void_p,
                                  c_void_p]),
    "tgl_dist_plan_figures": (c_int, [c_void_p, POINTER(_Figures)]),
}


# ---- Libraries ----------------------------------------------------------------------------------


def _load(name: str) -> ctypes.CDLL:
    """Loads a library from the folder of libtegula.so, else from where the system's loader finds it."""
    own = os.environ.get("TEGULA_LIBRARY")
    folder = Path(own).resolve().parent if own else Path(__file__).parent
    for path in folder / f"{name}.so", folder / f"{name}.so.0", Path(f"{name}.so.0"):
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            failure = error
    raise ImportError(f"{name} cannot be loaded: {failure}")


_dist = _load("libtegula_dist")
for _name, (_result, _arguments) in _FUNCTIONS.items():
    _function = getattr(_dist, _name)
    _function.restype, _function.argtypes = _result, _arguments


def _check(status: int) -> None:
    if status == 0:
        return
    name = lib.tgl_status_name(status).decode()
    text = ctypes.create_string_buffer(512)
    _dist.tgl_dist_last_error(text, len(text))
    message = text.value.decode(errors="replace") or lib.tgl_status_text(status).decode()
    raise _error_class(name)(name, message)


# ---- Ranks --------------------------------------------------------------------------------------


class _Ranks(NamedTuple):
    """The rank of this process, the number of ranks, and a function that gives each rank the objects of all."""

    rank: int
    ranks: int
    gather: Callable[[Any], List[Any]]
    mpi: Any  # the communicator of mpi4py; None: torch.distributed


def _torch_ranks(group: Any) -> _Ranks:
    import torch.distributed as torch_dist
    if not torch_dist.is_initialized():
        raise RuntimeError("torch.distributed is not initialised: call init_process_group() first")
    rank, ranks = torch_dist.get_rank(group), torch_dist.get_world_size(group)

    def gather(value: Any) -> List[Any]:
        values = [None] * ranks
        torch_dist.all_gather_object(values, value, group=group)
        return values
    return _Ranks(rank, ranks, gather, None)


def _ranks_of(group: Any) -> _Ranks:
    if hasattr(group, "Get_rank"):
        return _Ranks(group.Get_rank(), group.Get_size(), group.allgather, group)
    return _torch_ranks(group)


def _open_nccl(ranks: _Ranks, place: str, stream: int, engine: str, timeout: float) -> c_void_p:
    """Opens the communicator of GPUs. All ranks load NCCL first: one without it finds out before the
    others wait for it. Rank 0 makes the id."""
    made = (c_ubyte * ID_BYTES)()
    gpu: Any = None
    failure: Optional[Exception] = None
    try:
        gpu = device(place, 0)
        _check(_dist.tgl_dist_nccl_id(made if ranks.rank == 0 else None))
    except Exception as error:  # for all ranks
        failure = error
    all_made = ranks.gather((bytes(made), failure))
    for _, failure in all_made:
        if failure is not None:
            raise failure
    made = (c_ubyte * ID_BYTES).from_buffer_copy(all_made[0][0])
    options = _NcclOptions(id=ctypes.cast(made, c_void_p), rank=ranks.rank, ranks=ranks.ranks,
                           stream=stream, timeout_s=timeout, engine=ENGINES[engine])
    handle = c_void_p()
    _check(_dist.tgl_dist_open_nccl(byref(options), gpu.handle, byref(handle)))
    return handle


def _open_mpi(ranks: _Ranks, threads: int, timeout: float) -> c_void_p:
    """Opens the communicator of MPI ranks. An MPI_Comm is an integer in some MPI libraries, a pointer in
    others."""
    MPI = importlib.import_module("mpi4py.MPI")
    kind: Any = c_int if MPI._sizeof(MPI.Comm) == ctypes.sizeof(c_int) else c_void_p
    function = _load("libtegula_mpi").tgl_dist_open_mpi
    function.restype = c_int
    function.argtypes = [kind, c_void_p, POINTER(_MpiOptions), POINTER(c_void_p)]
    comm = kind.from_address(MPI._addressof(ranks.mpi))
    handle = c_void_p()
    options = _MpiOptions(timeout_s=timeout)
    _check(function(comm, device("cpu", threads).handle, byref(options), byref(handle)))
    return handle


# ---- Matrices -----------------------------------------------------------------------------------


class _Part(NamedTuple):
    """This rank's part of a matrix, and how it is stored: row-major or transposed."""

    layout: str  # "rows", "columns" or "copy", before the transpose
    shape: Tuple[int, int]
    transposed: bool
    ld: int
    type: int


def _part(name: str, x: Operand, layout: str) -> _Part:
    if len(x.form.shape) != 2 or not x.form.usable:
        raise ValueError(f"{name} has the shape {x.form.shape}; it must be a matrix")
    if layout not in ("rows", "columns", "copy"):
        raise ValueError(f"the layout of {name} is {layout!r}; it must be rows, columns or copy")
    rows, columns = x.form.shape
    down, right = x.form.strides
    if (rows > 1 and 0 < columns and down < (columns if right == 1 or columns <= 1 else 1)) or \
            (columns > 1 and 0 < rows and right < (1 if right == 1 else rows)):
        raise ValueError(f"{name} has the strides {x.form.strides}: its elements overlap or go backwards")
    if right == 1 or columns <= 1:
        return _Part(layout, (rows, columns), False, max(down if rows > 1 else columns, columns),
                     x.form.type)
    if down == 1 or rows <= 1:
        return _Part(layout, (rows, columns), True, max(right, rows), x.form.type)
    raise ValueError(f"{name} has the strides {x.form.strides}: its rows or its columns must be "
                     "contiguous")


def _whole(part: _Part, ranks: int) -> Tuple[int, int]:
    rows, columns = part.shape
    return (rows * ranks if part.layout == "rows" else rows,
            columns * ranks if part.layout == "columns" else columns)


def _layout(part: _Part, ranks: int) -> _Layout:
    rows, columns = _whole(part, ranks)
    kind = part.layout
    if part.transposed:
        rows, columns = columns, rows
        kind = {"rows": "columns", "columns": "rows"}.get(kind, kind)
    layout = _Layout()
    size = ctypes.sizeof(layout)
    if kind == "copy":
        _check(_dist.tgl_dist_replicated(byref(layout), size, rows, columns))
    elif kind == "rows":
        _check(_dist.tgl_dist_rows(byref(layout), size, rows, columns, ranks))
    else:
        _check(_dist.tgl_dist_columns(byref(layout), size, rows, columns, ranks))
    layout.ld = part.ld
    return layout


class _Recipe(NamedTuple):
    a: _Part
    b: _Part
    c: _Part
    bias: int  # the element type of the bias; 0: no bias
    activation: Optional[str]
    compute: str


class _Call(NamedTuple):
    """A product that is about to run."""

    recipe: _Recipe
    plan: Any  # a _Plan, whose handle _run() creates if it is new; None: _run() makes the _Plan too
    out: Any
    pointers: Tuple[Any, Any, Any, Any]  # of a, b, out and the bias


def _facts(torch: Any, x: Any) -> Any:
    """The attributes of a tensor on which the results of describe() and _part() depend. None: for a tensor
    that these functions might refuse or change."""
    if x is None:
        return ()
    if type(x) is not torch.Tensor or x.layout is not torch.strided or x.requires_grad or \
            x.is_conj() or x.is_neg():
        return None
    return x.dtype, x.shape, x.stride(), x.device


class _Plan:
    """A plan of libtegula_dist."""

    def __init__(self, ranks: int, recipe: _Recipe) -> None:
        """Makes the arguments of the plan. create() makes the plan itself."""
        self.handle = c_void_p()
        self.is_captured = False  # whether a CUDA graph contains runs of the plan
        self.is_kept = False  # whether the plan exists and is one of the communicator's plans
        (m, k), (k_b, n) = _whole(recipe.a, ranks), _whole(recipe.b, ranks)
        if k != k_b:
            raise ValueError(f"a is {m} x {k} and b is {k_b} x {n}")
        self._problem = problem = Problem()
        _check(lib.tgl_problem_init(byref(problem), ctypes.sizeof(problem), recipe.a.type, m, n, k))
        problem.type_c = recipe.c.type
        problem.trans_a = TRANS if recipe.a.transposed else NO_TRANS
        problem.trans_b = TRANS if recipe.b.transposed else NO_TRANS
        problem.compute = COMPUTE[recipe.compute]
        self._options = _Options()
        epilogue = Epilogue(bias=BIAS_COLUMN if recipe.bias else BIAS_NONE,
                            activation=ACTIVATIONS[recipe.activation], type_bias=recipe.bias)
        if recipe.bias or recipe.activation is not None:
            self._options.epilogue = ctypes.pointer(epilogue)
        self._layouts = [_layout(x, ranks) for x in (recipe.a, recipe.b, recipe.c)]

    def create(self, comm: c_void_p) -> None:
        """Makes the plan. Collective."""
        _check(_dist.tgl_dist_plan_create(comm, byref(self._problem), *map(byref, self._layouts),
                                          byref(self._options), byref(self.handle)))
        self.is_kept = True

    def figures(self) -> Dict[str, float]:
        figures = _Figures()
        _check(_dist.tgl_dist_plan_figures(self.handle, byref(figures)))
        return {name: getattr(figures, name) for name, *_ in _Figures._fields_[1:]}


# ---- Communicators ------------------------------------------------------------------------------


class Communicator:
    """The ranks of a torch.distributed process group (None: all), or of an mpi4py communicator.

    place: the GPU of this rank, such as "cuda:1", which no other rank has; or, with mpi4py, "cpu": arrays
    are in host memory. None: the current GPU of PyTorch; with mpi4py "cpu". The constructor, the products
    and close() are collective. engine: "auto" or "nccl", as in tegula/nccl.h. timeout: seconds that a rank
    waits for another one; 0: 300. threads: number of threads of a rank on the CPU; 0: OMP_NUM_THREADS, or all
    processors.
    """

    def __init__(self, group: Any = None, *, place: Optional[str] = None, engine: str = "auto",
                 timeout: float = 0, threads: int = 0) -> None:
        self._handle: Optional[c_void_p] = None
        self._plans: Dict[_Recipe, _Plan] = {}  # in the order of their last use
        self._captured: List[_Plan] = []  # former plans that CUDA graphs still need
        self._latest: Optional[_Plan] = None  # the plan in _plans that was used last
        self._described: Dict[Any, Tuple[_Recipe, _Plan]] = {}  # earlier calls with tensors, by their _key()
        if engine not in ENGINES:
            raise ValueError(f"engine is {engine!r}; it must be one of {', '.join(ENGINES)}")
        ranks = _ranks_of(group)
        self.rank, self.ranks = ranks.rank, ranks.ranks
        self.stream = 0
        if place is None:
            place = "cpu" if ranks.mpi is not None else _current_gpu()
        self.place = place
        if place == "cpu" and ranks.mpi is None:
            raise ValueError("host memory moves by MPI only: give an mpi4py communicator")
        if place == "cpu":
            self._handle = _open_mpi(ranks, threads, timeout)
        else:
            self._handle = _open_nccl(ranks, place, self.stream, engine, timeout)

    def close(self) -> None:
        """Closes the communicator, which must not be used afterwards. Collective."""
        handle, self._handle = self._handle, None
        for plan in (*self._plans.values(), *self._captured):
            _dist.tgl_dist_plan_destroy(plan.handle)
        self._plans.clear()
        self._captured.clear()
        if handle is not None:
            _dist.tgl_dist_close(handle)

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def synchronize(self) -> None:
        """Waits for all products that were started, and raises an exception if one has failed."""
        _check(_dist.tgl_dist_synchronize(self._open_handle()))

    def _open_handle(self) -> c_void_p:
        if self._handle is None:
            raise ValueError("the communicator is closed")
        return self._handle

    # ---- Products ----

    def matmul(self, a: Any, b: Any, layouts: Tuple[str, str, str], *, out: Any = None,
               bias: Any = None, activation: Optional[str] = None, alpha: float = 1,
               beta: float = 0, compute: str = "default") -> Any:
        """out := activation(alpha*A*B + beta*out + bias). a, b and out are this rank's parts of the matrices.

        layouts: the layouts of A, B and out. "rows" or "columns": each rank has the same number of them;
        "copy": each rank has the whole matrix. bias: an element for each column of this rank's out.
        """
        try:
            key = self._key(a, b, layouts, out, bias, activation, compute)
            call = self._recall(key, a, b, out, bias)
            if call is None:
                call = self._describe(a, b, layouts, out, bias, beta, activation, compute)
        except Exception:
            self._decline()
            raise
        try:
            self._run(call, alpha, beta)
        except ArgumentError as error:
            # If this rank has a plan, the call is repeated only after a failure at the beginning of the
            # run, whose message names a rank. A later failure may have changed out.
            if error.status != "TGL_BAD_ARGUMENT" or (call.recipe in self._plans and
                                                      " while rank " not in str(error)):
                raise
            # The ranks have not found the same plan, for example because a leading dimension changed on
            # one of them. All ranks create a new plan. A plan that a CUDA graph needs is kept for it.
            self._forget(call.recipe)
            self._run(call._replace(plan=None), alpha, beta)
        self._remember(key, call)
        return call.out

    def all_gather_matmul(self, a: Any, b: Any, **options: Any) -> Any:
        """Returns this rank's columns of A*B. a: this rank's rows of A; b: its columns of B."""
        return self.matmul(a, b, ("rows", "columns", "columns"), **options)

    def matmul_reduce_scatter(self, a: Any, b: Any, **options: Any) -> Any:
        """Returns this rank's rows of A*B. a: this rank's columns of A; b: its rows of B."""
        return self.matmul(a, b, ("columns", "rows", "rows"), **options)

    def matmul_all_reduce(self, a: Any, b: Any, **options: Any) -> Any:
        """Returns A*B. a: this rank's columns of A; b: its rows of B."""
        return self.matmul(a, b, ("columns", "rows", "copy"), **options)

    def figures(self, index: int = -1) -> Dict[str, float]:
        """The tgl_dist_figures (data moved, predicted times) of the plan that was used last. index: another
        plan, in the order of the last use."""
        return list(self._plans.values())[index].figures()

    def _result_shape(self, parts: Tuple[_Part, _Part], layout: str) -> Tuple[int, int]:
        rows, columns = _whole(parts[0], self.ranks)[0], _whole(parts[1], self.ranks)[1]
        if (layout == "rows" and rows % self.ranks) or (layout == "columns" and
                                                        columns % self.ranks):
            raise ValueError(f"{rows} x {columns} is not divisible into {layout} of "
                             f"{self.ranks} ranks")
        return (rows // self.ranks if layout == "rows" else rows,
                columns // self.ranks if layout == "columns" else columns)

    def _describe(self, a: Any, b: Any, layouts: Tuple[str, str, str], out: Any, bias: Any,
                  beta: float, activation: Optional[str], compute: str) -> _Call:
        """Checks this rank's arrays, and describes the call. Not collective."""
        x, y = describe("a", a), describe("b", b)
        parts = _part("a", x, layouts[0]), _part("b", y, layouts[1])
        if out is None:
            if beta != 0:
                raise ValueError("beta is not 0: give out")
            out = _empty(a, self._result_shape(parts, layouts[2]), parts[0].type)
        z = describe("out", out)
        part_out = _part("out", z, layouts[2])
        if part_out.transposed or not z.writable:
            raise ValueError("out must be writable, with contiguous rows")
        shift = describe("bias", bias) if bias is not None else None
        for operand in (x, y, z) + ((shift,) if shift is not None else ()):
            if operand.device != self.place:
                raise ValueError(f"an array is on {operand.device}, and the communicator on "
                                 f"{self.place}")
        if shift is not None and shift.form.shape != (part_out.shape[1],):
            raise ValueError(f"the bias has the shape {shift.form.shape}, and not "
                             f"{(part_out.shape[1],)}")
        if shift is not None and (not shift.form.usable or shift.form.strides != (1,)):
            raise ValueError("the bias must be contiguous")
        recipe = _Recipe(*parts, part_out, shift.form.type if shift is not None else 0, activation,
                         compute)
        plan = self._plans.get(recipe) or _Plan(self.ranks, recipe)
        self._follow(z.stream)
        return _Call(recipe, plan, out, (x.pointer, y.pointer, z.pointer,
                                        shift.pointer if shift is not None else None))

    def _key(self, a: Any, b: Any, layouts: Tuple[str, str, str], out: Any, bias: Any,
             activation: Optional[str], compute: str) -> Any:
        """A key that is equal only for calls with the same plan. None: only _describe() can find the plan for
        these arguments."""
        torch = sys.modules.get("torch")
        if torch is None or self.place == "cpu" or out is None:
            return None
        facts = tuple(_facts(torch, x) for x in (a, b, out, bias))
        return None if None in facts else (facts, tuple(layouts), activation, compute)

    def _recall(self, key: Any, a: Any, b: Any, out: Any, bias: Any) -> Optional[_Call]:
        """The description of a call, if a call with the same key has run before; else None."""
        recipe, plan = self._described.get(key, (None, None)) if key is not None else (None, None)
        if recipe is None or plan is None or not plan.is_kept:
            return None
        self._follow(sys.modules["torch"].cuda.current_stream(out.device).cuda_stream)
        return _Call(recipe, plan, out, (a.data_ptr(), b.data_ptr(), out.data_ptr(),
                                         None if bias is None else bias.data_ptr()))

    def _remember(self, key: Any, call: _Call) -> None:
        if key is None or self._latest is None:
            return
        if len(self._described) > 4 * PLANS_MAX:
            self._described.clear()
        self._described[key] = call.recipe, self._latest

    def _run(self, call: _Call, alpha: float, beta: float) -> None:
        """Runs the plan of a call, and creates it if it is new. If there are PLANS_MAX plans already, destroys
        the least recently used one; plans that a CUDA graph needs do not count."""
        handle = self._open_handle()
        plan = call.plan or _Plan(self.ranks, call.recipe)
        if not plan.is_kept:
            plan.create(handle)
            unused = [old for old, made in self._plans.items() if not made.is_captured]
            if len(unused) >= PLANS_MAX:
                self._forget(unused[0])
        if plan is not self._latest:
            self._plans.pop(call.recipe, None)
            self._plans[call.recipe] = self._latest = plan
        plan.is_captured = plan.is_captured or self._is_capturing()
        A, B, C, bias = call.pointers
        _check(_dist.tgl_dist_plan_run(plan.handle, alpha, A, B, beta, C, bias))

    def _forget(self, recipe: _Recipe) -> None:
        plan = self._plans.pop(recipe, None)
        if plan is self._latest:
            self._latest = None
        if plan is not None:
            plan.is_kept = False
        if plan is not None and plan.is_captured:
            self._captured.append(plan)
        elif plan is not None:
            _dist.tgl_dist_plan_destroy(plan.handle)

    def _decline(self) -> None:
        """Makes the product fail on all ranks, because the arguments of this rank are wrong. Otherwise the
        other ranks would wait for this one until the timeout. They create a new plan after a first
        failure, so this must make two creations fail."""
        for _ in range(2):
            if self._handle is None or lib.tgl_status_name(_dist.tgl_dist_plan_create(
                    self._handle, *[None] * 5, byref(c_void_p()))) != b"TGL_BAD_ARGUMENT":
                return

    def _is_capturing(self) -> bool:
        torch = sys.modules.get("torch")
        if self.place == "cpu" or torch is None:
            return False
        if f"cuda:{torch.cuda.current_device()}" == self.place:  # saves the time of the context manager
            return bool(torch.cuda.is_current_stream_capturing())
        with torch.cuda.device(self.place):
            return bool(torch.cuda.is_current_stream_capturing())

    def _follow(self, stream: Optional[int]) -> None:
        """Makes products run in `stream`, in which their arrays are up to date."""
        if stream is None or stream == self.stream:
            return
        if not self._is_capturing():  # a captured run is ordered by the capture itself
            _order_streams(self.place, self.stream, stream)
        _check(_dist.tgl_dist_set_stream(self._open_handle(), stream))
        self.stream = stream


def _current_gpu() -> str:
    import torch
    return f"cuda:{torch.cuda.current_device()}"


def _order_streams(place: str, before: int, after: int) -> None:
    """Makes later work in the stream `after` wait for the work that is now in the stream `before`."""
    import torch
    streams = [torch.cuda.ExternalStream(s, device=place) if s else torch.cuda.default_stream(place)
               for s in (before, after)]
    streams[1].wait_stream(streams[0])


def _empty(like: Any, shape: Tuple[int, int], number: int) -> Any:
    name = TYPE_NAMES[usual_result(number)]
    if hasattr(like, "new_empty"):
        import torch
        return like.new_empty(shape, dtype=getattr(torch, name))
    if isinstance(like, np.ndarray):
        return np.empty(shape, like.dtype if name == "bfloat16" else name)
    raise TypeError(f"give out: an array like {type(like).__name__} is not made here")
