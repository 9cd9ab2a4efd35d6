# SPDX-License-Identifier: Apache-2.0
"""grouped_matmul(): a product for each group, whose sizes differ and are in an array on the device."""

from ctypes import byref, c_void_p, pointer
from functools import lru_cache
from typing import Any, List, NamedTuple, Optional, Tuple

from ._arrays import Operand, describe, empty_like, is_torch
from ._checks import check_text
from ._devices import Device, process
from ._held import hold
from ._layout import Form
from ._library import (ACTIVATIONS, BIAS_COLUMN, BIAS_NONE, COL_MAJOR, COMPUTE, NO_TRANS, ROW_MAJOR,
                       TRANS, TYPES, Epilogue, Operands, PlanOptions, Problem, check, lib, usual_result)
from ._matmul import Place, _choose_device
from ._scales import arrange_scales, describe_scale

_ROWS, _DEPTH, _MASKED = 1, 2, 3  # tgl_grouping


class _Recipe(NamedTuple):
    """All that a plan is made from. Hashable."""

    a: Form
    b: Form
    d: Form
    groups: int
    grouping: int
    has_sizes: bool
    type_bias: int  # 0: none
    activation: Optional[str]
    compute: str
    kernel: Optional[str]
    scaling: Tuple[int, int, int, int]  # Scales.scaling


def _layout(name: str, form: Form) -> Tuple[int, int]:
    """The tgl_transpose of a row-major matrix, and its leading dimension."""
    for order, trans in (ROW_MAJOR, NO_TRANS), (COL_MAJOR, TRANS):
        ld = form.leading_dimension(order)
        if ld is not None:
            return trans, ld
    raise ValueError(f"{name} has the strides {form.strides}; it must be contiguous in one of its "
                     "last two dimensions")


def _stride(form: Form) -> int:
    return form.strides[0] if len(form.shape) == 3 else 0


class _Plan:
    """A tgl_plan of this process."""

    def __init__(self, recipe: _Recipe, device: Device) -> None:
        self.plan: Optional[c_void_p] = None
        self.process = process()
        self.device = device
        trans_a, lda = _layout("a", recipe.a)
        trans_b, ldb = _layout("b", recipe.b)
        problem = Problem(m=recipe.d.shape[-2], n=recipe.d.shape[-1], k=recipe.a.shape[-1],
                          order=ROW_MAJOR, trans_a=trans_a, trans_b=trans_b, type_a=recipe.a.type,
                          type_b=recipe.b.type, type_c=recipe.d.type,
                          compute=COMPUTE[recipe.compute], lda=lda, ldb=ldb,
                          ldc=recipe.d.leading_dimension(ROW_MAJOR), batch=recipe.groups,
                          stride_a=_stride(recipe.a), stride_b=_stride(recipe.b),
                          stride_c=_stride(recipe.d), grouping=recipe.grouping,
                          group_form=int(recipe.has_sizes))
        problem.scaling_a, problem.scaling_b, problem.ld_scale_a, problem.ld_scale_b = recipe.scaling
        options = PlanOptions(kernel=recipe.kernel.encode() if recipe.kernel else None)
        if recipe.type_bias or recipe.activation:
            options.epilogue = pointer(Epilogue(
                bias=BIAS_COLUMN if recipe.type_bias else BIAS_NONE,
                activation=ACTIVATIONS[recipe.activation], stride_bias=recipe.d.shape[-1],
                type_bias=recipe.type_bias))
        plan = c_void_p()
        check(lib.tgl_plan_create(device.handle, byref(problem), byref(options), byref(plan)))
        self.plan = plan

    @property
    def kernel(self) -> str:
        return str(lib.tgl_plan_kernel(self.plan).decode())

    def run(self, operands: Operands, stream: Optional[int]) -> None:
        check(lib.tgl_plan_run_operands(self.plan, byref(operands), stream))

    def __del__(self) -> None:
        if self.plan is not None and self.process == process():
            lib.tgl_plan_destroy(self.plan)


@lru_cache(maxsize=64)
def _cached(recipe: _Recipe, device: Device, _process: int) -> _Plan:
    return _Plan(recipe, device)


def _result_shape(a: Form, b: Form, groups: int, has_sizes: bool) -> Tuple[int, Tuple[int, ...]]:
    """The tgl_grouping, and the shape of the result."""
    kinds = {(2, 3): _ROWS, (2, 2): _DEPTH, (3, 3): _MASKED}
    grouping = kinds.get((len(a.shape), len(b.shape)), 0)
    if grouping == 0:
        raise ValueError(f"a has the shape {a.shape} and b {b.shape}; their numbers of dimensions "
                         "must be 2 and 3, 2 and 2, or 3 and 3")
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"a has {a.shape[-1]} columns and b {b.shape[-2]} rows; they must be equal")
    for name, form in ("a", a), ("b", b):
        if len(form.shape) == 3 and form.shape[0] != groups:
            raise ValueError(f"{name} has {form.shape[0]} matrices, and there are {groups} groups")
    if grouping == _MASKED and not has_sizes:
        raise ValueError("with three dimensions of a and b give sizes, not offs")
    rows, columns = a.shape[-2], b.shape[-1]
    return grouping, (rows, columns) if grouping == _ROWS else (groups, rows, columns)


def _describe_groups(offs: Any, sizes: Any) -> Operand:
    if (offs is None) == (sizes is None):
        raise TypeError("give either offs or sizes")
    name, given = ("offs", offs) if sizes is None else ("sizes", sizes)
    groups = describe(name, given)
    if groups.form.type != TYPES["int32"] or len(groups.form.shape) != 1 or \
            groups.form.row_major.strides != groups.form.strides:
        raise TypeError(f"{name} must be a contiguous vector of int32")
    return groups


def grouped_matmul(a: Any, b: Any, offs: Any = None, *, sizes: Any = None, bias: Any = None,
                   activation: Optional[str] = None, out: Any = None, compute: str = "default",
                   kernel: Optional[str] = None, device: Place = None, scale_a: Any = None,
                   scale_b: Any = None) -> Any:
    """Computes a product for each group, as torch._grouped_mm() does and, with scale_a and scale_b,
    torch._scaled_grouped_mm(). The sizes of the groups are read on the device.

    offs: where each group ends, a vector of int32 on the device of a and b. sizes: instead of offs,
        the size of each group. Sizes may be 0, and nothing needs to be padded.
    a (m, k), b (groups, k, n): rows of a, sorted by group, times the group's b. The result is
        (m, n); rows behind the last group are not written.
    a (m, k), b (k, n): columns of a and rows of b, sorted by group. The result is (groups, m, n).
    a (groups, m, k), b (groups, k, n), sizes: only the first sizes[i] rows of a[i] and of the result's
        matrix i are used. The other rows of the result are not written.
    bias: (groups, n). activation, compute, device: as in matmul().
    scale_a, scale_b: factors of a and b, for 8-bit types and groups of rows. The factors of a matrix
        have the shapes that matmul() takes; if a or b has a first dimension for the groups, so have its
        factors. With a (m, k) and b (groups, k, n): scale_a (1,), (m,) or, for each 128 of k,
        (m, k/128); scale_b (groups,), (groups, n), (groups, k/128, n) or (groups, k/128, n/128),
        rounded up. Factors with the strides of torch._scaled_grouped_mm or DeepGEMM are not copied; b
        and scale_b of DeepGEMM must be transposed.
    out: a row-major array for the result, which overlaps no other array. For float8 products it may
        also be of float32 or float16.
    kernel: as in plan().
    """
    check_text("kernel", kernel)
    if compute not in COMPUTE or activation not in ACTIVATIONS:
        raise ValueError(f"compute is {compute!r} and activation {activation!r}; see matmul()")
    x, y, groups = describe("a", a), describe("b", b), _describe_groups(offs, sizes)
    count = groups.form.shape[0]
    grouping, shape = _result_shape(x.form, y.form, count, sizes is not None)
    vector = None if bias is None else describe("bias", bias)
    if vector is not None and (vector.form.shape != (count, shape[-1]) or
                               vector.form.row_major.strides != vector.form.strides):
        raise ValueError(f"bias must be a contiguous array of the shape {(count, shape[-1])}")
    if x.form.conj or y.form.conj:
        raise ValueError("grouped products take no conjugates")
    factors = describe_scale("scale_a", scale_a), describe_scale("scale_b", scale_b)
    form = Form(shape, (), usual_result(x.form.type, factors != (None, None))).row_major
    d = empty_like(x, form) if out is None else describe("out", out)
    may_differ = x.form.type in (TYPES["float8_e4m3fn"], TYPES["float8_e5m2"])
    if d.form.shape != shape or (d.form.type != form.type and not may_differ) or not d.writable or \
            d.form.leading_dimension(ROW_MAJOR) is None:
        raise ValueError(f"out must be a writable row-major array of the shape {shape} and the type of the result")
    given: List[Operand] = [p for p in (x, y, groups, vector, d) + factors if p is not None]
    if len({p.device for p in given}) > 1:
        raise ValueError("the arrays are on different devices")
    scales = arrange_scales(factors, x.form, y.form, *(count if len(p.form.shape) == 3 else None for p in (x, y)))
    given += [p for p in scales.operands if p is not None]
    chosen = _choose_device(x.device, device)
    recipe = _Recipe(x.form, y.form, d.form, count, grouping, sizes is not None,
                     0 if vector is None else vector.form.type, activation, compute, kernel,
                     scales.scaling)
    plan = _cached(recipe, chosen, process())
    operands = Operands(alpha=1.0, A=x.pointer, B=y.pointer, C=d.pointer, groups=groups.pointer,
                        bias=None if vector is None else vector.pointer)
    operands.scale_a, operands.scale_b = (None if p is None else p.pointer for p in scales.operands)
    streams = {p.stream for p in given if p.stream is not None}
    if len(streams) > 1:
        chosen.sync()
    plan.run(operands, next(iter(streams)) if streams else None)
    if len(streams) > 1:
        chosen.sync()
    elif streams and not all(is_torch(p.array) for p in given):
        hold(chosen, next(iter(streams)), tuple(p.owner for p in given))
    return d.array
