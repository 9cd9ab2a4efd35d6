# SPDX-License-Identifier: Apache-2.0
"""Factors of 8-bit matrices: which kind an array's shape says, and their order in memory."""

from itertools import product
from typing import Any, List, NamedTuple, Optional, Tuple

from ._arrays import Operand, column_major_copy, describe, row_major_copy
from ._layout import Form, Layouts
from ._library import (COL_MAJOR, ROW_MAJOR, SCALE_BLOCK, SCALING_BLOCK, SCALING_LINE,
                       SCALING_LINE_128, SCALING_NONE, SCALING_TENSOR, TYPE_NAMES)

_BLOCKED = (SCALING_BLOCK, SCALING_LINE_128)

Pair = Tuple[Optional[Operand], Optional[Operand]]


class Scales(NamedTuple):
    """The factors of a and b."""

    operands: Pair
    scaling: Tuple[int, int, int, int]  # tgl_scaling of a and b, ld_scale of a and b
    are_copied: bool = False  # some had another order in memory


def describe_scale(name: str, x: Any) -> Optional[Operand]:
    """Factors of a or b; None without them."""
    if x is None:
        return None
    scale = describe(name, x)
    if TYPE_NAMES[scale.form.type] != "float32":
        raise TypeError(f"{name} has the type {TYPE_NAMES[scale.form.type]}; it must be float32")
    return scale


def _kinds(name: str, scale: Optional[Operand], lines: int, depth: int, of_b: bool) -> List[int]:
    """What the factors may be. lines: rows of a or columns of b."""
    if scale is None:
        return [SCALING_NONE]
    shape = scale.form.shape
    by_line = shape[::-1] if of_b else shape  # (lines, k) of b as well
    blocks, depth_blocks = -(-lines // SCALE_BLOCK), -(-depth // SCALE_BLOCK)
    padded = -(-depth_blocks // 4) * 4  # as cuBLASLt's blocks
    kinds = {
        SCALING_TENSOR: all(size == 1 for size in shape),
        SCALING_LINE: by_line in ((lines,), (lines, 1)),
        SCALING_LINE_128: by_line == (lines, depth_blocks),
        SCALING_BLOCK: by_line in ((blocks, depth_blocks), (blocks, padded)),
    }
    found = [kind for kind, fits in kinds.items() if fits]
    if not found:
        raise ValueError(f"{name} has the shape {shape}; it must have one element, or {lines}, or one for "
                         f"each {SCALE_BLOCK} of k, for each row or column or {SCALE_BLOCK} of them")
    return found


def _is_contiguous(form: Form) -> bool:
    """Strides along dimensions of size 1 do not matter."""
    return all(size == 1 or stride == usual
               for size, stride, usual in zip(form.shape, form.strides, form.row_major.strides))


def _arranged(name: str, scale: Optional[Operand], kind: int, of_b: bool) -> Tuple[Optional[Operand], int]:
    """The factors in the order of tgl_scaling, and their ld_scale."""
    if scale is None:
        return None, 0
    if kind not in _BLOCKED:
        return scale if _is_contiguous(scale.form) else row_major_copy(name, scale), 0
    order = ROW_MAJOR if (kind == SCALING_BLOCK) != of_b else COL_MAJOR
    ld = scale.form.leading_dimension(order)
    if ld is None:
        scale = (row_major_copy if order == ROW_MAJOR else column_major_copy)(name, scale)
        ld = scale.form.leading_dimension(order)
    assert ld is not None
    return scale, ld


def arrange_scales(scales: Pair, layouts: Layouts) -> Scales:
    """Decides what the factors of a and b are; those of blocks belong together. Copies those that have
    another order in memory."""
    (scale_a, scale_b), (a, b) = scales, (layouts.a.shape, layouts.b.shape)
    if scale_a is None and scale_b is None:
        return Scales(scales, (SCALING_NONE, SCALING_NONE, 0, 0))
    kinds = list(product(_kinds("scale_a", scale_a, a[-2], a[-1], False),
                         _kinds("scale_b", scale_b, b[-1], b[-2], True)))
    alike = [(x, y) for x, y in kinds if (x in _BLOCKED) == (y in _BLOCKED)]
    kind_a, kind_b = (alike or kinds)[0]
    usable_a, ld_a = _arranged("scale_a", scale_a, kind_a, False)
    usable_b, ld_b = _arranged("scale_b", scale_b, kind_b, True)
    are_copied = usable_a is not scale_a or usable_b is not scale_b
    return Scales((usable_a, usable_b), (kind_a, kind_b, ld_a, ld_b), are_copied)
