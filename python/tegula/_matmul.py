# SPDX-License-Identifier: Apache-2.0
"""matmul(), plan() and explain(): from arrays to recipes and addresses."""

from typing import Any, NamedTuple, Optional, Tuple, Union

import numpy as np

from ._arrays import Operand, assign, describe, empty_like, overlap, row_major_copy
from ._devices import Device, device as open_device
from ._layout import Form, Layouts, lay_out
from ._library import TYPE_NAMES, chip_explain
from ._plans import Options, PlanBase, Recipe, cached_plan, translate

Place = Union[str, Device, None]


class _Product(NamedTuple):
    """A product whose operands the library can use."""

    layouts: Layouts
    operands: Tuple[Optional[Operand], ...]  # a, b, c, d, bias
    d: Operand
    beta: float
    place: str  # the device of the arrays
    streams: Tuple[int, ...]
    out: Optional[Operand]  # what the caller gave


def _form(x: Optional[Operand]) -> Optional[Form]:
    return None if x is None else x.form


def _is_same(x: Optional[Operand], y: Optional[Operand]) -> bool:
    """Whether both are the same elements of memory."""
    return (x is not None and y is not None and
            (x.pointer, x.form, x.device) == (y.pointer, y.form, y.device))


def _prepare(a: Any, b: Any, out: Any, c: Any, bias: Any, beta: Optional[float]) -> _Product:
    """Describes and checks the arrays, and replaces those that the library cannot use."""
    x, y = describe("a", a), describe("b", b)
    target = None if out is None else describe("out", out)
    addend = None if c is None else describe("c", c)
    vector = None if bias is None else describe("bias", bias)
    given = [p for p in (x, y, addend, vector, target) if p is not None]
    places = {p.device for p in given}
    if len(places) > 1:
        raise ValueError(f"the arrays are on different devices: {', '.join(sorted(places))}")
    streams = tuple({p.stream: None for p in given if p.stream is not None})
    if target is not None and not target.writable:
        raise ValueError("out is read-only")
    if beta is None:
        beta = 0.0 if addend is None else 1.0
    if beta != 0 and addend is None and target is None:
        raise ValueError(f"beta is {beta}, but there is neither c nor out")
    if _is_same(addend, target):
        addend = None

    like = x if target is None else target
    scheme = lay_out(x.form, y.form, _form(addend), _form(target), _form(vector), like.form.type)
    d = target
    if target is not None and (not scheme.out_is_usable or
                               any(overlap(target, p) for p in (x, y, addend, vector) if p)):
        d = None  # the result is computed elsewhere and copied to out
        if addend is None and beta != 0:
            addend = target
        scheme = lay_out(x.form, y.form, _form(addend), None, _form(vector), target.form.type)
    if d is None:
        d = empty_like(like, scheme.result)
    operands = tuple(row_major_copy(name, operand) if operand and name in scheme.copies else operand
                     for name, operand in zip(Layouts._fields, (x, y, addend, d, vector)))
    return _Product(scheme.layouts, operands, d, float(beta), places.pop(), streams, target)


def _choose_device(place: str, wanted: Place) -> Device:
    """The device that multiplies arrays at `place`."""
    if wanted is None:
        return open_device(place)
    chosen = wanted if isinstance(wanted, Device) else open_device(wanted)
    if chosen.name == place or (place == "cpu" and not chosen.name.startswith("cuda")):
        return chosen
    raise ValueError(f"the arrays are on {place}, and the device is {chosen.name}; move them there "
                     "first, for example with tegula.device(...).array()")


def _run(plan: PlanBase, product: _Product, alpha: float) -> Any:
    """Runs the plan and returns the result."""
    pointers = tuple(None if x is None else x.pointer for x in product.operands)
    if len(product.streams) > 1:  # the operands are up to date in different streams
        plan.device.sync()
    plan.run(pointers, float(alpha), product.beta, product.streams[0] if product.streams else None)
    if len(product.streams) > 1:
        plan.device.sync()
    if product.out is not None:
        if product.d is not product.out:
            assign(product.out, product.d)
        return product.out.array
    result = product.d.array
    # As with numpy.matmul(), the product of two vectors is a scalar.
    return result[()] if isinstance(result, np.ndarray) else result


def matmul(a: Any, b: Any, out: Any = None, *, alpha: float = 1.0, beta: Optional[float] = None,
           c: Any = None, bias: Any = None, activation: Optional[str] = None,
           epilogue: Optional[str] = None, compute: str = "default",
           device: Place = None) -> Any:
    """activation(alpha * a @ b + beta * c + bias), written to out if it is given.

    a, b: vectors, matrices or batches of matrices with the shapes of numpy.matmul(), of float32,
        float64, float16 or bfloat16: NumPy arrays, PyTorch tensors, CuPy arrays, and others with
        __array_interface__, __cuda_array_interface__ or DLPack. The product is computed on the
        device and in the stream of the arrays. The result is an array of the same library.
    out: where the result is written. It may overlap the other arrays.
    beta: 1 if c is given, else 0. c: of the shape of the result; without it, beta is for out.
    bias: of the shape (n,) or (..., 1, n) for each column, (..., m, 1) for each row.
    activation: "relu", "gelu" or "silu".
    epilogue: a C expression instead of the activation and the sum, with acc (alpha * a @ b),
        c (beta * c), bias, row and col; on GPUs and "sim". Do not take it from untrusted sources.
    compute: the arithmetic that is permitted: "default", "ieee", "accurate", "tf32" or "fast".
    device: None: where the arrays are. "sim": the simulator, for arrays in host memory; or a device
        of tegula.device().
    """
    options = Options(compute, activation, epilogue)
    product = _prepare(a, b, out, c, bias, beta)
    chosen = _choose_device(product.place, device)
    recipe = Recipe(product.layouts, options, chosen.name, chosen.threads)
    return _run(cached_plan(recipe), product, alpha)


class Plan(PlanBase):
    """A product that is planned once and run many times. tegula.plan() makes it."""

    def __call__(self, a: Any, b: Any, out: Any = None, *, alpha: float = 1.0,
                 beta: Optional[float] = None, c: Any = None, bias: Any = None) -> Any:
        """As matmul(), for arrays of the shapes, strides and types that the plan was made for."""
        product = _prepare(a, b, out, c, bias, beta)
        if product.layouts != self.recipe.layouts:
            self._explain_difference(product.layouts)
        _choose_device(product.place, self.device)
        return _run(self, product, alpha)

    def _explain_difference(self, layouts: Layouts) -> None:
        for name, own, other in zip(Layouts._fields, self.recipe.layouts, layouts):
            if own != other:
                raise ValueError(f"{name} does not fit the plan, which was made for {_text(own)}, "
                                 f"not {_text(other)}")


def _text(form: Optional[Form]) -> str:
    """A form in an error message."""
    if form is None:
        return "none"
    return f"the shape {form.shape}, strides {form.strides} and type {TYPE_NAMES[form.type]}"


def plan(a: Any, b: Any, out: Any = None, *, c: Any = None, bias: Any = None,
         activation: Optional[str] = None, epilogue: Optional[str] = None,
         compute: str = "default", device: Place = None, kernel: Optional[str] = None,
         workspace_limit: int = 0) -> Plan:
    """A plan for arrays like these: only their shapes, strides, types and devices matter.

    kernel: a kernel string instead of the planner's choice. workspace_limit: bytes; 0: the default,
    -1: none. The other arguments are those of matmul().
    """
    options = Options(compute, activation, epilogue, kernel, workspace_limit)
    product = _prepare(a, b, out, c, bias, None)
    chosen = _choose_device(product.place, device)
    return Plan(Recipe(product.layouts, options, chosen.name, chosen.threads))


def explain(a: Any, b: Any, out: Any = None, *, chip: Optional[str] = None, device: Place = None,
            **options: Any) -> str:
    """Which kernel multiplies arrays like these, and why. options: those of plan().

    chip: explains the choice for a GPU that need not be there; tegula.chips() lists them. Arrays of
    numpy.empty() then describe the product.
    """
    if chip is None:
        return plan(a, b, out, device=device, **options).explain()
    product = _prepare(a, b, out, options.pop("c", None), options.pop("bias", None), None)
    problem, plan_options, _ = translate(product.layouts, Options(**options))
    return chip_explain(chip, problem, plan_options)
