# SPDX-License-Identifier: Apache-2.0
"""Plans of products. A recipe has everything that a plan is made from."""

import atexit
import contextlib
import json
import threading
from ctypes import byref, c_void_p, pointer
from functools import lru_cache
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ._calls import calls
from ._checks import check_text, integer
from ._devices import Device, device, process
from ._layout import Ints, Layouts, bias_kind, to_problem
from ._library import (ACTIVATIONS, COMPUTE, EFFORT, Counters, Epilogue, Operands, PlanOptions,
                       Problem, UnsupportedError, check, lib, written_text)


class Options(NamedTuple):
    """The options of a plan: the epilogue, the compute mode and so on."""

    compute: str = "default"
    activation: Optional[str] = None
    epilogue: Optional[str] = None  # a C expression
    kernel: Optional[str] = None
    workspace_limit: int = 0
    effort: Optional[str] = None
    scaling: Tuple[int, int, int, int] = (0, 0, 0, 0)  # tgl_scaling of a and b, ld_scale of a and b

    def check_types(self) -> None:
        for name in "compute", "activation", "epilogue", "kernel", "effort":
            check_text(name, getattr(self, name))
        integer("workspace_limit", self.workspace_limit, -1)


class Recipe(NamedTuple):
    """Everything that a plan is made from. It can be hashed and pickled."""

    layouts: Layouts
    options: Options
    device: str
    threads: int


def translate(layouts: Layouts, options: Options) -> Tuple[Problem, PlanOptions, List[Ints]]:
    """The arguments of tgl_plan_create(), and the byte offsets of the operands in each run."""
    options.check_types()
    if options.compute not in COMPUTE:
        raise ValueError(f"compute is {options.compute!r}; it must be one of " + ", ".join(COMPUTE))
    if options.activation not in ACTIVATIONS:
        raise ValueError(f"activation is {options.activation!r}; it must be None or one of " +
                         ", ".join(name for name in ACTIVATIONS if name))
    if options.effort not in EFFORT:
        raise ValueError(f"effort is {options.effort!r}; it must be None or one of " +
                         ", ".join(name for name in EFFORT if name))
    problem, stride_bias, offsets = to_problem(layouts, COMPUTE[options.compute])
    problem.scaling_a, problem.scaling_b, problem.ld_scale_a, problem.ld_scale_b = options.scaling
    plan_options = PlanOptions(kernel=options.kernel.encode() if options.kernel else None,
                               workspace_limit=options.workspace_limit,
                               effort=EFFORT[options.effort])
    if layouts.bias or options.activation or options.epilogue is not None:
        expression = options.epilogue.encode() if options.epilogue is not None else None
        plan_options.epilogue = pointer(Epilogue(
            bias=bias_kind(layouts), activation=ACTIVATIONS[options.activation],
            expression=expression, stride_bias=stride_bias,
            type_bias=layouts.bias.type if layouts.bias else 0))
    return problem, plan_options, offsets


class Handle:
    """A tgl_plan of this process."""

    def __init__(self, recipe: Recipe) -> None:
        self.plan: Optional[c_void_p] = None
        self.process = process()
        self.device: Device = device(recipe.device, recipe.threads)
        problem, options, self.offsets = translate(recipe.layouts, recipe.options)
        plan = c_void_p()
        check(lib.tgl_plan_create(self.device.handle, byref(problem), byref(options),
                                  byref(plan)))
        self.plan = plan

    def __del__(self) -> None:
        if getattr(self, "plan", None) is not None and self.process == process():
            lib.tgl_plan_destroy(self.plan)


class PlanBase:
    """A plan that runs on addresses. Threads may share it. After fork() and after unpickling, its handle is
    made again."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._handle = Handle(recipe)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.recipe,)

    def __repr__(self) -> str:
        shapes = " @ ".join(str(x.shape) for x in self.recipe.layouts[:2])
        return f"<tegula plan {shapes} on {self.device.name}: {self.kernel}>"

    def handle(self) -> Handle:
        """The handle of this process."""
        handle = self._handle
        if handle.process != process():
            handle = self._handle = Handle(self.recipe)
        return handle

    @property
    def device(self) -> Device:
        return self.handle().device

    @property
    def kernel(self) -> str:
        """The kernel string, which tegula.plan(kernel=...) accepts."""
        return str(lib.tgl_plan_kernel(self.handle().plan).decode())

    @property
    def workspace_bytes(self) -> int:
        """The workspace of a run in bytes, which the device provides."""
        return int(lib.tgl_plan_workspace_size(self.handle().plan))

    def explain(self) -> str:
        """The plan, and the reasons for its choices."""
        return written_text(lib.tgl_plan_explain, self.handle().plan)

    def counters(self) -> Dict[str, int]:
        """The memory accesses of the latest run, counted by the device "sim" (tgl_counters)."""
        counters = Counters()
        check(lib.tgl_plan_counters(self.handle().plan, byref(counters)))
        return counters.as_dict()

    def trace(self) -> Dict[str, Any]:
        """The counts of each source line in the latest run, and the accesses of a warp, step by
        step, recorded by the device "sim": what tgl_plan_trace() writes (docs/simulator.md)."""
        text = written_text(lib.tgl_plan_trace, self.handle().plan)
        if not text:
            raise UnsupportedError("TGL_UNSUPPORTED", "there is no trace: only plans on sim have "
                                   "one, after they have run")
        trace: Dict[str, Any] = json.loads(text)
        return trace

    def run(self, pointers: Tuple[Any, ...], alpha: complex, beta: complex,
            stream: Optional[int] = None, prepared: Tuple[Any, Any] = (None, None),
            scales: Tuple[Optional[int], Optional[int]] = (None, None)) -> None:
        """Runs the plan on the addresses of a, b, c, d and bias; None where there is none.

        prepared: the tgl_prepared of a and of b, or None. scales: the addresses of their factors."""
        handle = self.handle()
        operands = Operands(alpha=alpha.real, beta=beta.real, alpha_imag=alpha.imag,
                            beta_imag=beta.imag)
        for name, given, at in zip("ab", prepared, zip(*handle.offsets)):
            if given is not None and any(at):
                raise ValueError(f"{name} is prepared, and its batch dimensions have no common "
                                 "stride in this product, which takes several calls of the library")
        operands.prepared_a, operands.prepared_b = prepared
        operands.scale_a, operands.scale_b = scales
        in_place = self.recipe.layouts.c is None
        for offsets in handle.offsets:
            a, b, c, d, bias = (None if p is None else p + offset
                                for p, offset in zip(pointers, offsets))
            operands.A, operands.B, operands.bias = a, b, bias
            operands.C, operands.D = (d, None) if in_place else (c, d)
            check(lib.tgl_plan_run_operands(handle.plan, byref(operands), stream))


@lru_cache(maxsize=256)
def _cached(recipe: Recipe, _process: int) -> PlanBase:
    return PlanBase(recipe)


_kept: Dict[Tuple[Recipe, int], PlanBase] = {}


class _Thread(threading.local):
    keeps_plans = False


thread = _Thread()


@contextlib.contextmanager
def plans_are_kept(keeps: bool) -> Iterator[None]:
    """A context in which the cached plans that this thread uses are kept until the process ends if `keeps`,
    because a CUDA graph that captures their runs needs them as long as it exists."""
    thread.keeps_plans = keeps
    try:
        yield
    finally:
        thread.keeps_plans = False


def cached_plan(recipe: Recipe) -> PlanBase:
    """The plan of a recipe, from the cache of this process or new."""
    recipe.options.check_types()  # before the options are hashed
    plan = _cached(recipe, process())
    if thread.keeps_plans:
        _kept[recipe, process()] = plan
    return plan


def forget_plans() -> None:
    """Destroys the cached plans that nothing else refers to."""
    _cached.cache_clear()
    if calls is not None:
        calls.clear()


atexit.register(_kept.clear)
atexit.register(forget_plans)  # plans are destroyed before the interpreter is taken down
