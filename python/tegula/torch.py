# SPDX-License-Identifier: Apache-2.0
"""Tegula in PyTorch: an operator with gradients, and a context in which PyTorch's products use it.

    import tegula.torch
    y = tegula.torch.matmul(x, w)
    with tegula.torch.patch():
        y = model(x)                # torch.matmul() and F.linear() run on Tegula

Needs PyTorch 2.4 or later. The operator torch.ops.tegula.matmul works with torch.compile.
"""

from typing import Any, Callable, Dict, Optional, Tuple

try:
    import torch
except ImportError as error:
    raise ImportError("tegula.torch needs PyTorch 2.4 or later: pip install torch") from error
from torch import Tensor
from torch.overrides import TorchFunctionMode

from . import matmul as _matmul
from ._plans import plans_are_kept

_TYPES = (torch.float32, torch.float16, torch.bfloat16)

# The types of results that do not have the type of the operands, as in matmul().
_RESULTS = {torch.int8: torch.int32, torch.float8_e4m3fn: torch.bfloat16, torch.float8_e5m2: torch.bfloat16}


# ---- The operator -------------------------------------------------------------------------------


@torch.library.custom_op("tegula::matmul", mutates_args=())
def _operator(a: Tensor, b: Tensor, bias: Optional[Tensor], compute: str) -> Tensor:
    """a @ b + bias for matrices or batches of matrices. bias: a vector with an element for each column."""
    with plans_are_kept(a.is_cuda and torch.cuda.is_current_stream_capturing()):
        return _product(a, b, bias, compute)


def _product(a: Tensor, b: Tensor, bias: Optional[Tensor], compute: str) -> Tensor:
    return _matmul(a.detach(), b.detach(), bias=None if bias is None else bias.detach(),
                   compute=compute)


@_operator.register_fake
def _(a: Tensor, b: Tensor, bias: Optional[Tensor], compute: str) -> Tensor:
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.new_empty((*batch, a.shape[-2], b.shape[-1]), dtype=_RESULTS.get(a.dtype, a.dtype))


def _save(ctx: Any, inputs: Tuple, output: Tensor) -> None:
    a, b, bias, ctx.compute = inputs
    ctx.bias_shape = None if bias is None else bias.shape
    ctx.save_for_backward(a, b)


def _gradients(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
    """The gradients of the inputs. The gradient of an input that was broadcast is summed over the copies."""
    a, b = ctx.saved_tensors
    wants_a, wants_b, wants_bias, _ = ctx.needs_input_grad
    grad_a = grad_b = grad_bias = None
    if wants_a:
        grad_a = _operator(grad, b.mT, None, ctx.compute).sum_to_size(a.shape)
    if wants_b:
        grad_b = _operator(a.mT, grad, None, ctx.compute).sum_to_size(b.shape)
    if wants_bias:
        grad_bias = grad.sum_to_size(ctx.bias_shape)
    return grad_a, grad_b, grad_bias, None


_operator.register_autograd(_gradients, setup_context=_save)


# ---- Functions ----------------------------------------------------------------------------------


def matmul(a: Tensor, b: Tensor, *, compute: str = "default") -> Tensor:
    """torch.matmul() on Tegula, with gradients. compute: as in tegula.matmul()."""
    row = a.unsqueeze(0) if a.dim() == 1 else a
    column = b.unsqueeze(1) if b.dim() == 1 else b
    result = _operator(row, column, None, compute)
    if b.dim() == 1:
        result = result.squeeze(-1)
    return result.squeeze(-1 if b.dim() == 1 else -2) if a.dim() == 1 else result


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, *,
           compute: str = "default") -> Tensor:
    """torch.nn.functional.linear() on Tegula, with gradients; the bias is added in the kernel."""
    rows = x.reshape(x.shape[:-1].numel(), x.shape[-1])
    return _operator(rows, weight.mT, bias, compute).reshape(*x.shape[:-1], weight.shape[0])


def _serves(*tensors: Any) -> bool:
    """Whether Tegula can multiply these tensors with the same result as PyTorch."""
    first = tensors[0]
    return (all(type(x) in (Tensor, torch.nn.Parameter) and x.layout is torch.strided and
                x.device == first.device and x.dtype == first.dtype for x in tensors) and
            first.device.type in ("cpu", "cuda") and first.dtype in _TYPES and
            not torch.is_autocast_enabled(first.device.type))


def _serves_matmul(a: Any, b: Any) -> bool:
    return _serves(a, b) and 2 <= a.dim() <= 3 and 2 <= b.dim() <= 3


def _serves_linear(x: Any, weight: Any, bias: Any = None) -> bool:
    given = (x, weight) if bias is None else (x, weight, bias)
    return (_serves(*given) and x.dim() >= 1 and weight.dim() == 2 and
            (bias is None or bias.shape == weight.shape[:1]))


_ROUTES: Dict[Callable, Tuple[Callable, Callable]] = {
    torch.matmul: (_serves_matmul, matmul),
    Tensor.matmul: (_serves_matmul, matmul),
    Tensor.__matmul__: (_serves_matmul, matmul),
    torch.nn.functional.linear: (_serves_linear, linear),
}


class patch(TorchFunctionMode):
    """with patch(): products of dense float32, float16 and bfloat16 tensors run on Tegula.

    torch.matmul(), the operator @ and F.linear() are routed to Tegula, in this thread. PyTorch computes
    everything else: other functions, calls with out=, products under autocast, and calls of matmul() with
    vectors or more than 3 dimensions.
    """

    def __init__(self, compute: str = "default") -> None:
        super().__init__()
        self.compute = compute

    def __torch_function__(self, func: Callable, types: Any, args: Tuple = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        route = _ROUTES.get(func)
        if route is not None and self._is_routed(route[0], args, kwargs):
            return route[1](*args, **kwargs, compute=self.compute)
        return func(*args, **kwargs)

    @staticmethod
    def _is_routed(serves: Callable, args: Tuple, kwargs: Dict[str, Any]) -> bool:
        # matmul() is routed if it is called as matmul(a, b), linear() also with the keyword bias.
        return len(args) >= 2 and set(kwargs) <= {"bias"} and serves(*args, **kwargs)
