# SPDX-License-Identifier: Apache-2.0
"""Translates shapes and strides to the arguments of BLAS: order, transposes, leading dimensions.

The functions take forms (shape, strides, type) and never access an array.
"""

import itertools
from functools import lru_cache
from typing import List, NamedTuple, Optional, Tuple

import numpy as np

from ._library import (BIAS_COLUMN, BIAS_NONE, BIAS_ROW, COL_MAJOR, CONJ_NO_TRANS, CONJ_TRANS,
                       NO_TRANS, ROW_MAJOR, TRANS, TYPE_SIZES, Problem)

Ints = Tuple[int, ...]


class Form(NamedTuple):
    """The form of an array, or of a batch of matrices (..., rows, columns) in a product."""

    shape: Ints
    strides: Ints  # elements
    type: int  # tgl_type
    usable: bool = True  # False: misaligned, or strides that are not whole elements
    conj: bool = False  # only for a and b: the elements are the conjugates of those in memory

    def leading_dimension(self, order: int) -> Optional[int]:
        """The leading dimension of matrices that are stored in this order; 0: any one fits; None: the
        matrices are not stored in this order."""
        if 0 in self.shape:
            return 0
        if not self.usable:
            return None
        (lines, length), (line_step, step) = self.shape[-2:], self.strides[-2:]
        if order == COL_MAJOR:
            lines, length, line_step, step = length, lines, step, line_step
        if length > 1 and step != 1:
            return None
        if lines == 1:
            return 0
        return line_step if line_step >= length else None

    @property
    def is_blas(self) -> bool:
        """Whether BLAS can express the strides of each matrix."""
        return (self.leading_dimension(ROW_MAJOR) is not None or
                self.leading_dimension(COL_MAJOR) is not None)

    @property
    def row_major(self) -> "Form":
        """The form of a row-major copy."""
        strides = [1] * len(self.shape)
        for axis in range(len(strides) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * self.shape[axis]
        return Form(self.shape, tuple(strides), self.type, conj=self.conj)


class Layouts(NamedTuple):
    """The operands of a product D := A*B + C + bias, with the batch dimensions of D."""

    a: Form
    b: Form
    c: Optional[Form]  # None: there is no C, or C is D
    out: Form  # D
    bias: Optional[Form]  # (..., 1, n) or (..., m, 1)


class Scheme(NamedTuple):
    """How a product is computed."""

    layouts: Layouts
    result: Form  # the form of the array that the caller gets
    copies: Tuple[str, ...]  # operands that are replaced by row-major copies
    out_is_usable: bool  # False: the result is computed in another array and copied to out


# ---- Shapes -------------------------------------------------------------------------------------


def _batch_shape(a: Ints, b: Ints) -> Ints:
    """The batch dimensions of the result. Raises ValueError if a and b cannot be multiplied."""
    if not a or not b:
        raise ValueError(f"{'b' if a else 'a'} has no dimensions; a product needs matrices or "
                         "vectors")
    rows = b[-2] if len(b) > 1 else b[0]
    if a[-1] != rows:
        raise ValueError(f"a has the shape {a} and b {b}: {a[-1]} columns of a do not match "
                         f"{rows} rows of b")
    try:
        return np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ValueError(f"a has the shape {a} and b {b}: the batch dimensions {a[:-2]} and "
                         f"{b[:-2]} cannot be broadcast together") from None


def _as_matrix(x: Form, add_row: bool, add_column: bool) -> Form:
    """x with a dimension of size 1 for the rows or columns that a vector does not have."""
    shape, strides = x.shape, x.strides
    if add_column:
        shape, strides = shape + (1,), strides + (0,)
    if add_row or len(shape) < 2:
        shape, strides = shape[:-1] + (1,) + shape[-1:], strides[:-1] + (0,) + strides[-1:]
    return Form(shape, strides, x.type, x.usable, x.conj)


def _broadcast(name: str, x: Form, batch: Ints) -> Form:
    """x, broadcast to these batch dimensions."""
    own = x.shape[:-2]
    if own == batch:
        return x
    missing = len(batch) - len(own)
    if missing < 0 or any(size not in (1, n) for size, n in zip(own, batch[missing:])):
        raise ValueError(f"{name} has the batch dimensions {own}, the result {batch}")
    steps = (0,) * missing + tuple(0 if size == 1 else step for size, step in zip(own, x.strides))
    return x._replace(shape=batch + x.shape[-2:], strides=steps + x.strides[-2:])


def _common_order(d: Form, c: Optional[Form], by_rows: bool = False) -> Optional[int]:
    """The order in which the library can access both C and D; None: there is none."""
    for order in (ROW_MAJOR,) if by_rows else (ROW_MAJOR, COL_MAJOR):
        if d.leading_dimension(order) is not None and \
                (c is None or c.leading_dimension(order) is not None):
            return order
    return None


def _check_out(out: Form, shape: Ints) -> None:
    if out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, the result {shape}")
    if 0 not in shape and any(step == 0 and size > 1 for size, step in zip(shape, out.strides)):
        raise ValueError("elements of out share memory (a stride is 0)")


def _bias_is_contiguous(x: Form, given: Ints, m: int, n: int, shape: Ints) -> bool:
    rows, columns = x.shape[-2:]
    if (rows, columns) not in ((1, n), (m, 1)):
        raise ValueError(f"bias has the shape {given}; for a result of the shape {shape} it must "
                         "have an element for each column, or, with a last dimension of 1, for "
                         "each row")
    length, step = max((rows, x.strides[-2]), (columns, x.strides[-1]))
    return x.usable and (length <= 1 or step == 1)


@lru_cache(maxsize=1024)
def lay_out(a: Form, b: Form, c: Optional[Form], out: Optional[Form], bias: Optional[Form],
            type_d: int, by_rows: bool = False) -> Scheme:
    """Decides how arrays of these forms are multiplied. If out is None, the result is row-major and has
    the type type_d. by_rows: C and D must be row-major.

    Raises ValueError if the arrays do not fit together.
    """
    batch = _batch_shape(a.shape, b.shape)
    row, column = len(a.shape) == 1, len(b.shape) == 1  # dimensions that the result lacks
    m, n = 1 if row else a.shape[-2], 1 if column else b.shape[-1]
    shape = batch + (() if row else (m,)) + (() if column else (n,))
    copies: List[str] = []

    def place(name: str, x: Form, add_row: bool, add_column: bool) -> Form:
        return _broadcast(name, _as_matrix(x, add_row, add_column), batch)

    def copied(name: str, x: Form, add_row: bool, add_column: bool) -> Form:
        copies.append(name)
        return place(name, x.row_major, add_row, add_column)

    left = place("a", a, row, False)
    if not left.is_blas:
        left = copied("a", a, row, False)
    right = place("b", b, False, column)
    if not right.is_blas:
        right = copied("b", b, False, column)

    if out is not None:
        _check_out(out, shape)
    result = Form(shape, (), type_d).row_major if out is None else out
    target = place("out", result, row, column)
    addend = None
    if c is not None:
        addend = place("c", c, row, column)
        if addend.shape[-2:] != (m, n):
            raise ValueError(f"c has the shape {c.shape}, the result {shape}; a vector that is "
                             "added to each row or column is a bias")
        if _common_order(target, addend, by_rows) is None:
            addend = copied("c", c, row, column)
    added = None
    if bias is not None:
        if not bias.shape:
            raise ValueError("bias has no dimensions; it must be a vector")
        added = place("bias", bias, row, column)
        if not _bias_is_contiguous(added, bias.shape, m, n, shape):
            added = copied("bias", bias, row, column)
    return Scheme(Layouts(left, right, addend, target, added), result, tuple(copies),
                  _common_order(target, addend, by_rows) is not None)


# ---- The problem --------------------------------------------------------------------------------


def bias_kind(layouts: Layouts) -> int:
    """The tgl_bias of the bias."""
    if layouts.bias is None:
        return BIAS_NONE
    rows, columns = layouts.bias.shape[-2:]
    return BIAS_COLUMN if rows == 1 and columns == layouts.out.shape[-1] else BIAS_ROW


def _stored(x: Form, order: int) -> Tuple[int, int]:
    """The tgl_transpose and the leading dimension of A or B in a problem of this order."""
    ld = x.leading_dimension(order)
    if ld is not None:
        return CONJ_NO_TRANS if x.conj else NO_TRANS, ld
    ld = x.leading_dimension(ROW_MAJOR + COL_MAJOR - order)
    return CONJ_TRANS if x.conj else TRANS, ld or 0


# A batch dimension: its size, and the strides of the operands in the order of Layouts.
_Dimension = Tuple[int, Ints]


def _merged(layouts: Layouts) -> List[_Dimension]:
    """The batch dimensions. Neighbouring ones are merged if each operand has one stride over both."""
    merged: List[_Dimension] = []
    for axis, size in enumerate(layouts.out.shape[:-2]):
        steps = tuple(x.strides[axis] if x else 0 for x in layouts)
        if size == 1:
            continue
        if merged and all(outer == size * step for outer, step in zip(merged[-1][1], steps)):
            merged[-1] = (merged[-1][0] * size, steps)
        else:
            merged.append((size, steps))
    return merged


def _is_batch(dimension: _Dimension, d: Form, order: int) -> bool:
    """Whether the library accepts the dimension as its batch. No stride may be negative, and the matrices
    of the result must follow each other or be interleaved within the leading dimension."""
    count, steps = dimension
    if count == 0:
        return True
    if min(steps) < 0:
        return False
    lines, length = d.shape[-2:] if order == ROW_MAJOR else d.shape[:-3:-1]
    ld, step = d.leading_dimension(order) or length, steps[3]
    return step >= (lines - 1) * ld + length or length <= step <= (ld - length) // (count - 1)


def to_problem(layouts: Layouts, compute: int) -> Tuple[Problem, int, List[Ints]]:
    """The problem, the batch stride of the bias, and for each run the byte offsets of a, b, c, d and bias.

    The innermost batch dimension is the library's batch if the library accepts it. For the other
    dimensions the plan runs once for each index.
    """
    a, b, c, d, _ = layouts
    order = _common_order(d, c)
    assert order is not None, "lay_out() has found one"
    trans_a, lda = _stored(a, order)
    trans_b, ldb = _stored(b, order)

    dimensions = _merged(layouts)
    count, strides = 1, (0,) * len(layouts)
    if dimensions and _is_batch(dimensions[-1], d, order):
        count, strides = dimensions.pop()
    sizes = [TYPE_SIZES[x.type] if x else 0 for x in layouts]
    offsets = [tuple(size * sum(i * steps[x] for i, (_, steps) in zip(index, dimensions))
                     for x, size in enumerate(sizes))
               for index in itertools.product(*(range(n) for n, _ in dimensions))]

    problem = Problem(
        m=d.shape[-2], n=d.shape[-1], k=a.shape[-1], order=order, trans_a=trans_a,
        trans_b=trans_b, type_a=a.type, type_b=b.type, compute=compute, lda=lda, ldb=ldb,
        batch=count, stride_a=strides[0], stride_b=strides[1])
    if c is None:
        problem.type_c, problem.ldc, problem.stride_c = \
            d.type, d.leading_dimension(order), strides[3]
    else:
        problem.type_c, problem.ldc, problem.stride_c = \
            c.type, c.leading_dimension(order), strides[2]
        problem.type_d, problem.ldd, problem.stride_d = \
            d.type, d.leading_dimension(order), strides[3]
    return problem, strides[4], offsets
