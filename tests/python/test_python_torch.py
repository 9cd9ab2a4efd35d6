# SPDX-License-Identifier: Apache-2.0
"""tegula.torch, where PyTorch is installed."""

import unittest
from unittest import mock

try:
    import torch
except ImportError:
    torch = None

if torch is not None:
    import tegula.torch
    from torch.nn import functional

    DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def pairs(self):
        """Tensors whose products torch.matmul() defines."""
        for device in DEVICES:
            for a, b in (((5, 7), (7, 3)), ((4, 5, 7), (4, 7, 3)), ((4, 5, 7), (7, 3)),
                         ((5, 7), (4, 7, 3)), ((7,), (7, 3)), ((5, 7), (7,)), ((7,), (7,))):
                yield (torch.randn(a, device=device, requires_grad=True),
                       torch.randn(b, device=device, requires_grad=True))

    def test_matmul_and_gradients(self):
        for a, b in self.pairs():
            ours, theirs = tegula.torch.matmul(a, b), torch.matmul(a, b)
            torch.testing.assert_close(ours, theirs)
            grad = torch.randn_like(theirs)
            for x, y in zip(torch.autograd.grad(ours, (a, b), grad),
                            torch.autograd.grad(theirs, (a, b), grad)):
                torch.testing.assert_close(x, y)

    def test_factors_of_blocks(self):
        """Factors with the strides that torch._scaled_mm asks for."""
        m, n, k = 24, 200, 300
        for device in DEVICES:
            a = torch.randn(m, k, device=device).to(torch.float8_e4m3fn)
            b = torch.randn(n, k, device=device).to(torch.float8_e4m3fn).t()
            lines = torch.rand(3, m, device=device).t()  # strides (1, m)
            blocks = torch.rand(2, 3, device=device).t()  # strides (1, 3)
            result = tegula.matmul(a, b, scale_a=lines, scale_b=blocks)
            full_a = a.float() * lines.repeat_interleave(128, 1)[:, :k]
            full_b = b.float() * blocks.repeat_interleave(128, 0)[:k].repeat_interleave(128, 1)[:, :n]
            torch.testing.assert_close(result.float(), full_a @ full_b, rtol=2**-7, atol=0.1)

    def test_linear(self):
        for device in DEVICES:
            for shape in ((7,), (5, 7), (2, 5, 7)):
                x, w, b = (torch.randn(s, device=device, requires_grad=True)
                           for s in (shape, (3, 7), (3,)))
                ours, theirs = tegula.torch.linear(x, w, b), functional.linear(x, w, b)
                torch.testing.assert_close(ours, theirs)
                for got, want in zip(torch.autograd.grad(ours.sum(), (x, w, b)),
                                     torch.autograd.grad(theirs.sum(), (x, w, b))):
                    torch.testing.assert_close(got, want)

    def test_operator(self):
        for device in DEVICES:
            a, b, bias = (torch.randn(s, device=device, requires_grad=True)
                          for s in ((5, 7), (7, 3), (3,)))
            torch.library.opcheck(torch.ops.tegula.matmul.default, (a, b, bias, "default"))

    def test_int8(self):
        a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((5, 7), (7, 3)))
        expected = a.int() @ b.int()
        for result in tegula.matmul(a, b), tegula.torch.matmul(a, b):
            self.assertIs(result.dtype, torch.int32)
            self.assertTrue(torch.equal(result, expected))
        torch.library.opcheck(torch.ops.tegula.matmul.default, (a, b, None, "default"))
        theirs = a @ b  # PyTorch's result is int8
        with tegula.torch.patch():
            self.assertTrue(torch.equal(a @ b, theirs))

    def test_float8(self):
        for dtype in torch.float8_e4m3fn, torch.float8_e5m2:
            a, b = torch.randn(5, 7).to(dtype), torch.randn(7, 3).to(dtype)
            result = tegula.torch.matmul(a, b)
            self.assertIs(result.dtype, torch.bfloat16)
            torch.testing.assert_close(result.float(), a.float() @ b.float(), rtol=2**-7, atol=2**-7)
            torch.library.opcheck(torch.ops.tegula.matmul.default, (a, b, None, "default"),
                                  test_utils="test_faketensor")

    def test_compile(self):
        for device in DEVICES:
            a, b = torch.randn(5, 7, device=device), torch.randn(7, 3, device=device)
            compiled = torch.compile(tegula.torch.matmul, fullgraph=True, backend="aot_eager")
            torch.testing.assert_close(compiled(a, b), a @ b)

    @unittest.skipUnless(torch is not None and torch.cuda.is_available(), "needs a GPU")
    def test_graph_with_a_prepared_operand(self):
        """A CUDA graph of a product has the bits of the product with both operands as they are."""
        a, b = (torch.randn(s, device="cuda") for s in ((1000, 1536), (1536, 1100)))
        expected = tegula.matmul(a, b, compute="accurate")
        torch.testing.assert_close(expected.double(), a.double() @ b.double(), rtol=0, atol=1e-3)
        out = torch.empty_like(expected)
        with tegula.prepare(b) as right:
            plan = tegula.plan(a, right, out, compute="accurate")
            plan(a, right, out)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                plan(a, right, out)
            for sign in 1, -1:
                a.mul_(sign)
                out.zero_()
                graph.replay()
                self.assertTrue(torch.equal(out, sign * expected))

    def test_patch(self):
        calls = []
        original = tegula.torch._matmul

        def count(*args, **kwargs):
            calls.append(args)
            return original(*args, **kwargs)
        model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
        x = torch.randn(2, 7)
        expected = model(x)
        with mock.patch.object(tegula.torch, "_matmul", count):
            with tegula.torch.patch():
                torch.testing.assert_close(model(x), expected)
                self.assertEqual(len(calls), 2)
                for product in (lambda: x @ x.T, lambda: torch.matmul(x, x.T),
                                lambda: x.matmul(x.T)):
                    calls.clear()
                    product()
                    self.assertEqual(len(calls), 1)
                calls.clear()
                x.double() @ x.double().T
                torch.matmul(x, x.T, out=torch.empty(2, 2))
                torch.mm(x, x.T)
                self.assertEqual(calls, [])
            x @ x.T
            self.assertEqual(calls, [])


if __name__ == "__main__":
    unittest.main()
