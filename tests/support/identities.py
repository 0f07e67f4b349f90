"""Equations between ONNX's operators: what computes the same, a line each, read in both directions.

On the left is an operator, or two of which one reads the other; on the right how graphs have it otherwise. Those of
functions and rows are in `conrepair.ground.equations.operators`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conrepair.ground.equations.operators import OTHERS


@dataclass(frozen=True)
class Equation:
    """Two expressions of one value.

    Attributes:
        left: The one with fewer operators.
        right: The other one.
        exact: Whether both give the same numbers of any type, bit for bit but for a zero's sign; else they're the
            same in real numbers, and rounded otherwise.
    """

    left: str
    right: str
    exact: bool = False


def _equations(table: str, *, exact: bool) -> Iterator[Equation]:
    for line in table.replace("\n ", "").strip().splitlines():
        left, _, right = line.partition(" = ")
        yield Equation(left, right, exact)


_EXACT = """
Flatten(x) = Reshape(x, [x0, -1])
Relu(x) = Clip(x, 0)
PRelu(x, slope) = Where(x < 0, x * slope, x)
GlobalMaxPool(x) = ReduceMax(x, [2, 3])
MaxPool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) = MaxPool(Pad(x, [0, 0, 1, 1, 0, 0, 1, 1], -1e999),
  kernel_shape=[3, 3])
DepthToSpace(x, blocksize=blocksize, mode="DCR") = s = Reshape(x, [x0, blocksize, blocksize, -1, x2, x3]);
  Reshape(Transpose(s, perm=[0, 3, 4, 1, 5, 2]), [x0, -1, x2 * blocksize, x3 * blocksize])
DepthToSpace(x, blocksize=blocksize, mode="CRD") = s = Reshape(x, [x0, -1, blocksize, blocksize, x2, x3]);
  Reshape(Transpose(s, perm=[0, 1, 4, 2, 5, 3]), [x0, -1, x2 * blocksize, x3 * blocksize])
SpaceToDepth(x, blocksize=blocksize) = s = Reshape(x, [x0, x1, x2 / blocksize, blocksize, x3 / blocksize, blocksize]);
  Reshape(Transpose(s, perm=[0, 3, 5, 1, 2, 4]), [x0, -1, x2 / blocksize, x3 / blocksize])
Reshape(Transpose(Reshape(x, [x0, g, -1, x2, x3]), perm=[0, 2, 1, 3, 4]), [x0, x1, x2, x3]) =
  Reshape(Transpose(Reshape(x, [x0, g, -1, x2 * x3]), perm=[0, 2, 1, 3]), [x0, x1, x2, x3])
Resize(x, None, None, [x0, x1, x2 * 2, x3 * 2]) = s = Expand(Reshape(x, [x0, x1, x2, 1, x3, 1]), [x0, x1, x2, 2, x3,
  2]); Reshape(s, [x0, x1, x2 * 2, x3 * 2])
Resize(x, None, None, [x0, x1, x2 * 2, x3 * 2]) = Resize(x, None, None, [x0, x1, x2 * 2, x3 * 2],
  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
"""
_REAL = """
Pow(x, 2) = x * x
LpNormalization(x, axis=axis, p=1) = x / ReduceL1(x)
LogSoftmax(x, axis=axis) = x - ReduceLogSumExp(x)
ReduceLogSumExp(x) = m = ReduceMax(x); Log(ReduceSum(Exp(x - m))) + m
RMSNormalization(x, scale, axis=axis, epsilon=epsilon) = x / Sqrt(ReduceMean(x * x) + epsilon) * scale
InstanceNormalization(x, scale, bias, epsilon=epsilon) = d = x - ReduceMean(x); d / Sqrt(ReduceMean(d * d) + epsilon)
  * PerChannel(scale) + PerChannel(bias)
GroupNormalization(x, scale, bias, num_groups=num_groups, epsilon=epsilon) = s = Reshape(x, [x0, num_groups, -1]); d =
  s - ReduceMean(s, [2]); n = Reshape(d / Sqrt(ReduceMean(d * d, [2]) + epsilon), [x0, x1, x2, x3]); n *
  Unsqueeze(scale, [1, 2]) + Unsqueeze(bias, [1, 2])
MeanVarianceNormalization(x) = d = x - ReduceMean(x); d / (Sqrt(ReduceMean(d * d)) + 1e-9)
Einsum(x, w, equation="ij,jk->ik") = MatMul(x, w)
Einsum(x, w, equation="ij,kj->ik") = MatMul(x, Transpose(w, perm=[1, 0]))
Gemm(x, w, b) = MatMul(x, w) + b
Gemm(x, w, b, transB=1) = MatMul(x, Transpose(w, perm=[1, 0])) + b
Gemm(x, w, b, alpha=alpha, beta=beta) = MatMul(x, w) * alpha + b * beta
BatchNormalization(Gemm(x, w, b), scale, bias, mean, variance, epsilon=epsilon) = f = scale / Sqrt(variance +
  epsilon); Gemm(x, w * f, (b - mean) * f + bias)
BatchNormalization(Conv(x, w, b), scale, bias, mean, variance, epsilon=epsilon) = f = scale / Sqrt(variance +
  epsilon); Conv(x, w * Unsqueeze(f, [1, 2, 3]), (b - mean) * f + bias)
Conv(x, w, b) = Conv(x, w) + Unsqueeze(b, [1, 2])
Conv(x, w, pads=[1, 1, 1, 1]) = Conv(Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), w)
Conv(x, Unsqueeze(w, [2, 3])) = Einsum(x, w, equation="nchw,oc->nohw")
Conv(x, Unsqueeze(w, [2, 3])) = Transpose(MatMul(Transpose(x, perm=[0, 2, 3, 1]), Transpose(w, perm=[1, 0])), perm=[0,
  3, 1, 2])
AveragePool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1) = AveragePool(Pad(x, [0, 0, 1, 1, 0, 0, 1,
  1]), kernel_shape=[3, 3])
GlobalAveragePool(x) = ReduceMean(x, [2, 3])
Attention(q, k, v, scale=scale) = MatMul(Softmax(MatMul(q, Transpose(k, perm=[0, 1, 3, 2])) * scale, axis=-1), v)
Attention(q, k, v, mask, scale=scale) = MatMul(Softmax(MatMul(q, Transpose(k, perm=[0, 1, 3, 2])) * scale + mask,
  axis=-1), v)
Attention(q, k, v, scale=scale, is_causal=1) = s = MatMul(q, Transpose(k, perm=[0, 1, 3, 2])) * scale;
  MatMul(Softmax(Where(Trilu(s * 0 + 1, upper=0) < 1, -1e999, s), axis=-1), v)
Attention(q, few, fewer, scale=scale) = Attention(q, Gather(few, [0, 0, 1, 1], axis=1), Gather(fewer, [0, 0, 1, 1],
  axis=1), scale=scale)
RotaryEmbedding(q, cos, sin) = l = Slice(q, [0], [q3 / 2], [3]); r = Slice(q, [q3 / 2], [q3], [3]); c = Unsqueeze(cos,
  [1]); s = Unsqueeze(sin, [1]); Concat(l * c - r * s, l * s + r * c, axis=-1)
RotaryEmbedding(q, cos, sin, interleaved=1) = l = Slice(q, [0], [q3], [3], [2]); r = Slice(q, [1], [q3], [3], [2]); c
  = Unsqueeze(cos, [1]); s = Unsqueeze(sin, [1]); Reshape(Concat(Unsqueeze(l * c - r * s, [4]), Unsqueeze(l * s + r *
  c, [4]), axis=-1), Shape(q))
RNN(s, w, r, b, None, h, hidden_size=hidden_size) = c = Slice(b, [0], [b1 / 2], [1]) + Slice(b, [b1 / 2], [b1], [1]);
  Unsqueeze(Tanh(MatMul(s, Transpose(w, perm=[0, 2, 1])) + MatMul(h, Transpose(r, perm=[0, 2, 1])) + c), [0])
LSTM(s, w, r, b, None, h, c, hidden_size=hidden_size) = a = Slice(b, [0], [b1 / 2], [1]) + Slice(b, [b1 / 2], [b1],
  [1]); g = MatMul(s, Transpose(w, perm=[0, 2, 1])) + MatMul(h, Transpose(r, perm=[0, 2, 1])) + a; i =
  Sigmoid(Slice(g, [0], [b1 / 8], [2])); o = Sigmoid(Slice(g, [b1 / 8], [b1 / 4], [2])); f = Sigmoid(Slice(g, [b1 /
  4], [3 * b1 / 8], [2])); Unsqueeze(o * Tanh(f * c + i * Tanh(Slice(g, [3 * b1 / 8], [b1 / 2], [2]))), [0])
GRU(s, w, r, b, None, h, hidden_size=hidden_size, linear_before_reset=1) = i = MatMul(s, Transpose(w, perm=[0, 2, 1]))
  + Slice(b, [0], [b1 / 2], [1]); o = MatMul(h, Transpose(r, perm=[0, 2, 1])) + Slice(b, [b1 / 2], [b1], [1]); g =
  Sigmoid(Slice(i, [0], [b1 / 3], [2]) + Slice(o, [0], [b1 / 3], [2])); z = Slice(g, [0], [b1 / 6], [2]); n =
  Tanh(Slice(i, [b1 / 3], [b1 / 2], [2]) + Slice(g, [b1 / 6], [b1 / 3], [2]) * Slice(o, [b1 / 3], [b1 / 2], [2]));
  Unsqueeze((1 - z) * n + z * h, [0])
DequantizeLinear(byte, step, zero) = (CastLike(byte, step) - CastLike(zero, step)) * step
QuantizeLinear(x, step, zero) = CastLike(Clip(Round(x / step) + CastLike(zero, x), -128, 127), zero)
DequantizeLinear(QuantizeLinear(x, step, zero), step, zero) = z = CastLike(zero, x); (Clip(Round(x / step) + z, -128,
  127) - z) * step
"""
IDENTITIES: tuple[Equation, ...] = (
    *_equations(_EXACT, exact=True),
    *_equations(_REAL, exact=False),
    *(Equation(*pair) for pair in OTHERS),
)
"""All that have an operator of ONNX on the left."""
