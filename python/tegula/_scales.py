# SPDX-License-Identifier: Apache-2.0
"""Factors of 8-bit matrices. The shape of an array says what its factors are for (tgl_scaling)."""

from itertools import product
from typing import Any, List, NamedTuple, Optional, Tuple

from ._arrays import Operand, column_major_copy, describe, row_major_copy
from ._layout import Form
from ._library import (COL_MAJOR, ROW_MAJOR, SCALE_BLOCK, SCALING_BLOCK, SCALING_LINE,
                       SCALING_LINE_128, SCALING_NONE, SCALING_TENSOR, TYPE_NAMES)

_BLOCKED = (SCALING_BLOCK, SCALING_LINE_128)

Pair = Tuple[Optional[Operand], Optional[Operand]]


class Scales(NamedTuple):
    """The factors of a and b."""

    operands: Pair
    scaling: Tuple[int, int, int, int]  # tgl_scaling of a and b, ld_scale of a and b
    are_copied: bool = False  # whether factors were copied, because they had another order in memory


def describe_scale(name: str, x: Any) -> Optional[Operand]:
    """The operand of the factors of a or b. Raises TypeError unless they are float32. None: no factors."""
    if x is None:
        return None
    scale = describe(name, x)
    if TYPE_NAMES[scale.form.type] != "float32":
        raise TypeError(f"{name} has the type {TYPE_NAMES[scale.form.type]}; it must be float32")
    return scale


def _shape_of_one(name: str, scale: Optional[Operand], groups: Optional[int]) -> Optional[Tuple[int, ...]]:
    """The shape of the factors of one matrix. groups: the number of matrices, which is then the size of the
    first dimension; None: there is one matrix. Returns None if there are no factors."""
    if scale is None:
        return None
    shape = scale.form.shape
    if groups is None:
        return shape
    if not shape or shape[0] != groups:
        raise ValueError(f"{name} has the shape {shape}; it must have factors for each of {groups} groups")
    return shape[1:]


def _kinds(name: str, shape: Optional[Tuple[int, ...]], lines: int, depth: int, of_b: bool) -> List[int]:
    """The values of tgl_scaling that fit the shape of a matrix's factors. shape: None without factors. lines:
    number of rows of a or columns of b."""
    if shape is None:
        return [SCALING_NONE]
    by_line = shape[::-1] if of_b else shape  # for b too, the lines first and k last
    blocks, depth_blocks = -(-lines // SCALE_BLOCK), -(-depth // SCALE_BLOCK)
    padded = -(-depth_blocks // 4) * 4  # cuBLASLt pads this dimension to a multiple of 4
    kinds = {
        SCALING_TENSOR: all(size == 1 for size in shape),
        SCALING_LINE: by_line in ((lines,), (lines, 1)),
        SCALING_LINE_128: by_line == (lines, depth_blocks),
        SCALING_BLOCK: by_line in ((blocks, depth_blocks), (blocks, padded)),
    }
    found = [kind for kind, fits in kinds.items() if fits]
    if not found:
        raise ValueError(f"{name} has the shape {shape}; it must have one element, or {lines}, or one "
                         f"for each {SCALE_BLOCK} of k, for each row or column or {SCALE_BLOCK} of them")
    return found


def _is_contiguous(form: Form) -> bool:
    """Whether the strides are those of a row-major array, except along dimensions of size 1."""
    return all(size == 1 or stride == usual
               for size, stride, usual in zip(form.shape, form.strides, form.row_major.strides))


def _leading_dimension(form: Form, order: int, groups: Optional[int]) -> Optional[int]:
    """The ld_scale of factors for blocks; 0: any one fits; None: the factors are not stored in this order.
    The factors of one group must directly follow those of the group before."""
    ld = form.leading_dimension(order)
    if groups is None or groups == 1 or ld is None or 0 in form.shape:
        return ld
    rows, row = form.shape[-2:] if order == ROW_MAJOR else form.shape[:-3:-1]
    if rows == 1:
        return form.strides[0] if form.strides[0] >= row else None
    return ld if form.strides[0] == rows * ld else None


def _arranged(name: str, scale: Optional[Operand], kind: int, of_b: bool,
              groups: Optional[int]) -> Tuple[Optional[Operand], int]:
    """The factors in the order that tgl_scaling requires, and their ld_scale."""
    if scale is None:
        return None, 0
    if kind not in _BLOCKED:
        return scale if _is_contiguous(scale.form) else row_major_copy(name, scale), 0
    order = ROW_MAJOR if (kind == SCALING_BLOCK) != of_b else COL_MAJOR
    ld = _leading_dimension(scale.form, order, groups)
    if ld is None:
        scale = (row_major_copy if order == ROW_MAJOR else column_major_copy)(name, scale)
        ld = _leading_dimension(scale.form, order, groups)
    assert ld is not None
    return scale, ld


def arrange_scales(scales: Pair, a: Form, b: Form, groups_a: Optional[int] = None,
                   groups_b: Optional[int] = None) -> Scales:
    """Decides which tgl_scaling the factors of a and b have. If their shapes fit several, both get factors
    for each 128 of k, or neither. Copies factors that have another order in memory. groups_a, groups_b:
    the argument `groups` of _shape_of_one() for a and b."""
    scale_a, scale_b = scales
    if scale_a is None and scale_b is None:
        return Scales(scales, (SCALING_NONE, SCALING_NONE, 0, 0))
    of_a, of_b = _shape_of_one("scale_a", scale_a, groups_a), _shape_of_one("scale_b", scale_b, groups_b)
    name_a, name_b = ("scale_a" if groups_a is None else "scale_a[i]", "scale_b" if groups_b is None else "scale_b[i]")
    kinds = list(product(_kinds(name_a, of_a, a.shape[-2], a.shape[-1], False),
                         _kinds(name_b, of_b, b.shape[-1], b.shape[-2], True)))
    alike = [(x, y) for x, y in kinds if (x in _BLOCKED) == (y in _BLOCKED)]
    kind_a, kind_b = (alike or kinds)[0]
    usable_a, ld_a = _arranged("scale_a", scale_a, kind_a, False, groups_a)
    usable_b, ld_b = _arranged("scale_b", scale_b, kind_b, True, groups_b)
    are_copied = usable_a is not scale_a or usable_b is not scale_b
    return Scales((usable_a, usable_b), (kind_a, kind_b, ld_a, ld_b), are_copied)
