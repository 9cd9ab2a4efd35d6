# SPDX-License-Identifier: Apache-2.0
"""matmul(), plan(), explain() and prepare(). They turn arrays into recipes of plans, and addresses."""

from typing import Any, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from ._arrays import (Operand, assign, describe, empty_like, is_torch, maker_like, overlap,
                      row_major_copy)
from ._calls import calls, know_type_of
from ._checks import factor, integer
from ._devices import Device, device as open_device
from ._held import hold
from ._layout import Form, Layouts, Scheme, lay_out
from ._library import SIDES, TYPE_NAMES, TYPES, chip_explain, usual_result
from ._plans import Options, PlanBase, Recipe, cached_plan, thread, translate
from ._prepared import Prepared
from ._scales import Scales, arrange_scales, describe_scale

Place = Union[str, Device, None]

_UNPREPARED = (None, None)


class _Product(NamedTuple):
    """The checked arrays of a product, and how it is computed. No array has been made for it yet."""

    given: Tuple[Optional[Operand], ...]  # a, b, c, d, bias; d is None: an array has to be made
    prepared: Tuple[Optional[Prepared], Optional[Prepared]]  # a and b, if they are prepared
    out: Optional[Operand]  # the array that the caller gave for the result
    like: Operand  # a new result is an array of the same library as this one
    scheme: Scheme
    beta: complex
    place: str  # the device of the arrays
    scales: Scales  # factors of a and b


def _form(x: Optional[Operand]) -> Optional[Form]:
    return None if x is None else x.form


def _is_same(x: Optional[Operand], y: Optional[Operand]) -> bool:
    """Whether both describe the same elements in memory."""
    return (x is not None and y is not None and
            (x.pointer, x.form, x.device) == (y.pointer, y.form, y.device))


def _describe_factor(name: str, x: Any) -> Operand:
    return x.operand if isinstance(x, Prepared) else describe(name, x)


def _prepared_factor(name: str, x: Any) -> Optional[Prepared]:
    """x if it is a prepared operand, else None. Raises ValueError if it cannot be used as `name`."""
    if not isinstance(x, Prepared):
        return None
    x.taken_as(name)
    return x


def _check_out(out: Operand, prepared: Tuple[Optional[Prepared], ...]) -> None:
    if not out.writable:
        raise ValueError("out is read-only")
    for x in prepared:
        if x is not None and overlap(out, x.operand):
            raise ValueError(f"out overlaps {x.side}, which is prepared and must not change")


def _describe_product(a: Any, b: Any, out: Any, c: Any, bias: Any, beta: Optional[complex],
                      scale_a: Any = None, scale_b: Any = None) -> _Product:
    """Describes and checks the arrays, and decides how they are multiplied."""
    prepared = _prepared_factor("a", a), _prepared_factor("b", b)
    x, y = _describe_factor("a", a), _describe_factor("b", b)
    target = None if out is None else describe("out", out)
    addend = None if c is None else describe("c", c)
    vector = None if bias is None else describe("bias", bias)
    scales = describe_scale("scale_a", scale_a), describe_scale("scale_b", scale_b)
    is_scaled = scales != (None, None)
    places = {p.device for p in (x, y, addend, vector, target) + scales if p is not None}
    if len(places) > 1:
        raise ValueError(f"the arrays are on different devices: {', '.join(sorted(places))}")
    if target is not None:
        _check_out(target, prepared)
    beta = float(addend is not None) if beta is None else factor("beta", beta)
    if beta != 0 and addend is None and target is None:
        raise ValueError(f"beta is {beta}, but there is neither c nor out")
    if _is_same(addend, target):
        addend = None

    if TYPES["int8"] in (x.form.type, y.form.type) and x.form.type != y.form.type:
        raise TypeError("a and b have different types: int8 is multiplied by int8")

    like = x if target is None else target
    type_d = usual_result(x.form.type, is_scaled) if target is None else target.form.type
    by_rows = prepared != _UNPREPARED  # operands are prepared for row-major results
    scheme = lay_out(x.form, y.form, _form(addend), _form(target), _form(vector), type_d, by_rows)
    d = target
    if target is not None and (not scheme.out_is_usable or
                               any(overlap(target, p) for p in (x, y, addend, vector) + scales if p)):
        d = None  # the result is computed in another array and copied to out
        if addend is None and beta != 0:
            addend = target
        scheme = lay_out(x.form, y.form, _form(addend), None, _form(vector), type_d, by_rows)
    return _Product((x, y, addend, d, vector), prepared, target, like, scheme, beta, places.pop(),
                    arrange_scales(scales, scheme.layouts.a, scheme.layouts.b))


def _choose_compute(compute: Optional[str], product: _Product) -> str:
    """The compute mode that the caller gave, else the one that the operands are prepared for."""
    if compute is not None:
        return compute
    if product.prepared == _UNPREPARED:
        return "default"
    modes = {x.compute for x in product.prepared if x is not None}
    if len(modes) > 1:
        raise ValueError("a and b are prepared for different arithmetic: give compute")
    return modes.pop()


def _choose_device(place: str, wanted: Place) -> Device:
    """The device that multiplies arrays of the device `place`."""
    if wanted is None:
        return open_device(place)
    if not isinstance(wanted, (str, Device)):
        raise TypeError(f"device is {wanted!r}; it must be a name such as 'cpu', or a device of "
                        "tegula.device()")
    chosen = wanted if isinstance(wanted, Device) else open_device(wanted)
    if chosen.name == place or (place == "cpu" and not chosen.name.startswith("cuda")):
        return chosen
    raise ValueError(f"the arrays are on {place}, and the device is {chosen.name}; move them there "
                     "first, for example with tegula.device(...).array()")


def _recipe(product: _Product, options: Options, device: Place) -> Recipe:
    if device is None and product.prepared != _UNPREPARED:
        device = next(x.device for x in product.prepared if x is not None)
    chosen = _choose_device(product.place, device)
    return Recipe(product.scheme.layouts, options, chosen.name, chosen.threads)


def _usable(product: _Product) -> Tuple[Optional[Operand], ...]:
    """The operands a, b, c, d and bias. Makes d, and copies arrays that the library cannot access."""
    a, b, c, d, bias = product.given
    if d is None:
        d = empty_like(product.like, product.scheme.result)
    made = a, b, c, d, bias
    if not product.scheme.copies:
        return made
    return tuple(row_major_copy(name, x) if x and name in product.scheme.copies else x
                 for name, x in zip(Layouts._fields, made))


def _streams(operands: Tuple[Optional[Operand], ...], out: Optional[Operand]) -> List[int]:
    """The streams in which the operands are up to date, each once."""
    found = {x.stream: None for x in operands + (out,) if x is not None and x.stream is not None}
    return list(found)


def _hold(chosen: Device, product: _Product, operands: Tuple[Optional[Operand], ...],
          stream: Optional[int]) -> None:
    """Keeps the arrays that a product in this stream uses until it has run. Tensors of PyTorch need not be
    kept (_held.py), except for prepared operands, which other streams may use."""
    owners = tuple(x.owner for x in operands if x is not None and x.device != "cpu" and
                   (x.is_of_any_stream or not is_torch(x.array)))
    if owners:
        hold(chosen, stream, owners)


def _run(plan: PlanBase, product: _Product, alpha: complex) -> Any:
    """Runs the plan and returns the result."""
    operands = _usable(product)
    streams = _streams(operands + product.scales.operands, product.out)
    scale_a, scale_b = (None if x is None else x.pointer for x in product.scales.operands)
    pointers = tuple(None if x is None else x.pointer for x in operands)
    prepared: Tuple[Any, Any] = _UNPREPARED
    if product.prepared != _UNPREPARED:
        a, b = product.prepared
        prepared = a and a.taken_as("a"), b and b.taken_as("b")
    if len(streams) > 1:
        plan.device.sync()
    plan.run(pointers, factor("alpha", alpha), product.beta, streams[0] if streams else None, prepared,
             (scale_a, scale_b))
    if len(streams) > 1:
        plan.device.sync()
    elif streams or product.prepared != _UNPREPARED:
        _hold(plan.device, product, operands + product.scales.operands, streams[0] if streams else None)
    d, out = operands[3], product.out
    assert d is not None
    if out is not None:
        if d is not out:
            assign(out, d)
        return out.array
    # As with numpy.matmul(), the product of two vectors is a scalar.
    return d.array[()] if isinstance(d.array, np.ndarray) else d.array


def _learn(arrays: Tuple[Any, ...], options: Tuple[Any, ...], owner: Any, plan: PlanBase,
           product: _Product, result: Any) -> None:
    """Tells the compiled path about this product, if one run computes it without copies of arrays.

    options: the arguments besides the arrays that select the plan. owner: an object that keeps the plan
    alive; None: the caller keeps it."""
    scheme, handle = product.scheme, plan.handle()
    if calls is None or product.prepared != _UNPREPARED or scheme.copies or \
            product.scales.are_copied or \
            product.given[3] is not product.out or len(handle.offsets) != 1 or any(handle.offsets[0]):
        return
    assert handle.plan is not None
    for array in arrays + (result,):
        know_type_of(array)
    new_result = None if product.out is not None else maker_like(product.like, scheme.result)
    calls.learn(*arrays, *options, owner, handle.plan.value, scheme.layouts.c is None, new_result,
                not scheme.result.shape, None if product.place == "cpu" else plan.device)


def matmul(a: Any, b: Any, out: Any = None, *, alpha: complex = 1.0, beta: Optional[complex] = None,
           c: Any = None, bias: Any = None, activation: Optional[str] = None,
           epilogue: Optional[str] = None, compute: Optional[str] = None,
           device: Place = None, scale_a: Any = None, scale_b: Any = None) -> Any:
    """Computes activation(alpha * a @ b + beta * c + bias), and writes it to out if out is given.

    a, b: vectors, matrices or batches of matrices with the shapes of numpy.matmul(). They are NumPy arrays,
        PyTorch tensors, CuPy arrays, or others with __array_interface__, __cuda_array_interface__ or DLPack.
        Both have one type: float32, float64, float16, bfloat16, complex64, complex128, int8, or a float8
        type. The product is computed on the device and in the stream of the arrays. The result is an array
        of the same library; on the CPU a NumPy array, unless a is a tensor of PyTorch.
        The result of int8 is int32, modulo 2^32; alpha and beta must then be integers.
        float8_e4m3fn and float8_e5m2 are the types of PyTorch and ml_dtypes, and may be mixed; the result
        is bfloat16, or has the type of out.
    scale_a, scale_b: factors of a and b, for 8-bit types: arrays of float32 on the device of a and b,
        with one element, or one for each row of a, (m,) or (m, 1), or column of b, (n,) or (1, n).
        For float8 also one factor for each 128 of k, and for each row of a or column of b, (m, k/128) or
        (k/128, n), or for each 128 of these, (m/128, k/128) or (k/128, n/128), rounded up. Then both a
        and b must have factors for each 128 of k. Factors with the strides of torch._scaled_mm are not
        copied. The result of int8 with factors is float32, or has the type of out.
    out: where the result is written. It may overlap the other arrays, but not a prepared operand.
    alpha, beta: may be complex in products of complex arrays.
    c: an array of the shape of the result. beta: by default 1 if c is given, else 0. With beta, but without
        c, out is C.
    bias: an element for each column, with the shape (n,) or (..., 1, n), or for each row, (..., m, 1).
    activation: "relu", "gelu" or "silu".
    epilogue: a C expression instead of the activation and the sum, with acc (alpha * a @ b),
        c (beta * c), bias, row and col; on GPUs and "sim". Do not take it from untrusted sources.
    compute: the arithmetic that is permitted: "default", "ieee", "accurate", "tf32" or "fast".
        None: the mode of a prepared operand, else "default".
    device: None: the device of a prepared operand, else of the arrays. "sim": the simulator, for arrays in
        host memory. Or a device that tegula.device() returned.
    """
    if calls is not None and not thread.keeps_plans:
        result = calls.run(a, b, out, c, bias, scale_a, scale_b, alpha, beta, compute, activation, epilogue, device)
        if result is not None:
            return result
    product = _describe_product(a, b, out, c, bias, beta, scale_a, scale_b)
    options = Options(_choose_compute(compute, product), activation, epilogue,
                      scaling=product.scales.scaling)
    plan = cached_plan(_recipe(product, options, device))
    result = _run(plan, product, alpha)
    _learn((a, b, out, c, bias, scale_a, scale_b), (compute, activation, epilogue, device), plan, plan, product, result)
    return result


class Plan(PlanBase):
    """A product that is planned once and run many times. tegula.plan() makes it."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe)
        self._key = object()  # stands for the plan in the compiled path, which must not keep the plan alive

    def __call__(self, a: Any, b: Any, out: Any = None, *, alpha: complex = 1.0,
                 beta: Optional[complex] = None, c: Any = None, bias: Any = None) -> Any:
        """Like matmul(), for arrays with the shapes, strides and types that the plan was made for."""
        key = self._key, None, None, None
        if calls is not None:
            result = calls.run(a, b, out, c, bias, None, None, alpha, beta, *key)
            if result is not None:
                return result
        product = _describe_product(a, b, out, c, bias, beta)
        if product.scheme.layouts != self.recipe.layouts:
            self._explain_difference(product.scheme.layouts)
        _choose_device(product.place, self.device)
        result = _run(self, product, alpha)
        _learn((a, b, out, c, bias, None, None), key, None, self, product, result)
        return result

    def _explain_difference(self, layouts: Layouts) -> None:
        for name, own, other in zip(Layouts._fields, self.recipe.layouts, layouts):
            if own != other:
                raise ValueError(f"{name} does not fit the plan, which was made for {_text(own)}, "
                                 f"not {_text(other)}")


def _text(form: Optional[Form]) -> str:
    """Describes a form in an error message."""
    if form is None:
        return "none"
    return f"the shape {form.shape}, strides {form.strides} and type {TYPE_NAMES[form.type]}"


def plan(a: Any, b: Any, out: Any = None, *, c: Any = None, bias: Any = None,
         activation: Optional[str] = None, epilogue: Optional[str] = None,
         compute: Optional[str] = None, device: Place = None, kernel: Optional[str] = None,
         workspace_limit: int = 0, effort: Optional[str] = None) -> Plan:
    """Makes a plan for arrays like these. Only their shapes, strides, types and devices matter.

    kernel: a kernel string instead of the planner's choice. workspace_limit: bytes; 0: the default,
    -1: none. effort: "measure": candidates are measured; "estimate": they are not; None: the environment
    variable TEGULA_EFFORT decides. The other arguments are those of matmul().
    """
    product = _describe_product(a, b, out, c, bias, None)
    options = Options(_choose_compute(compute, product), activation, epilogue, kernel,
                      workspace_limit, effort)
    return Plan(_recipe(product, options, device))


def explain(a: Any, b: Any, out: Any = None, *, chip: Optional[str] = None, device: Place = None,
            c: Any = None, bias: Any = None, compute: Optional[str] = None, **options: Any) -> str:
    """Says which kernel multiplies arrays like these, and why. options: further arguments of plan().

    chip: the name of a GPU, which this machine need not have, for which the choice is explained;
    tegula.chips() lists the names. Arrays of numpy.empty() can then describe the product.
    """
    if chip is None:
        return plan(a, b, out, device=device, c=c, bias=bias, compute=compute, **options).explain()
    product = _describe_product(a, b, out, c, bias, None)
    problem, plan_options, _ = translate(
        product.scheme.layouts, Options(_choose_compute(compute, product), **options))
    return chip_explain(chip, problem, plan_options)


def prepare(x: Any, side: str = "b", *, size: int = 4096, compute: str = "accurate",
            device: Place = None, kernel: Optional[str] = None) -> Prepared:
    """Makes a matrix ready for many products: matmul() and plans take the result in its place.

    On GPUs, compute="accurate" splits both operands into words before it multiplies them. A prepared
    operand is split once, and not in each product. The results are bitwise the same. In all other cases
    nothing is prepared, and products run as they do with the matrix itself.

    x: an array that matmul() accepts. Its elements must not change as long as the result is used.
    side: which operand x is, "a" or "b".
    size: for side="b" the number of rows of a, for side="a" the number of columns of b, in one of the
        products. It decides which kernel is used, and so whether there is something to prepare.
    compute, device: as in matmul(). kernel: as in plan().
    """
    if not isinstance(side, str) or side not in SIDES:
        raise ValueError(f"side is {side!r}; it must be 'a' or 'b'")
    size = integer("size", size, 1)
    operand = describe(side, x)
    factors = (operand.form, _factor_of(operand.form, side, size))
    scheme = lay_out(*(factors if side == "a" else factors[::-1]), None, None, None,
                     usual_result(operand.form.type), by_rows=True)
    chosen = _choose_device(operand.device, device)
    plan = cached_plan(Recipe(scheme.layouts, Options(compute, kernel=kernel), chosen.name,
                              chosen.threads))
    if any(offsets["ab".index(side)] for offsets in plan.handle().offsets):
        raise ValueError(f"the batch dimensions of {side} have no common stride: prepare a copy, "
                         "or each part")
    if scheme.copies:
        operand = row_major_copy(side, operand)
    return Prepared(plan, side, operand, compute)


def _factor_of(form: Form, side: str, size: int) -> Form:
    """The form of a matrix that can be multiplied with operands of this form and side."""
    shape = form.shape or (1,)  # lay_out() reports that there are no dimensions
    depth = shape[-1] if side == "a" else shape[-2:][0]
    return Form((depth, size) if side == "a" else (size, depth), (), form.type).row_major
