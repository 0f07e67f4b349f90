"""Activation functions and normalizations: written out, as exporters write them, and with what stands before them."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import written_patterns

written_patterns("""
gelu(x):  # x/2 * (1 + erf(x / sqrt 2)), in one of the orders in which exporters write it
    erf = Erf(x / sqrt(2)) + 1; one(read(x * erf * 0.5), read(x * 0.5 * erf), x * (erf * 0.5))
silu(x):
    x * Sigmoid(x)
gelu by erf: onnxruntime:GeluFusionL1 onnxruntime:GeluFusionL2 tflite:Gelu
    gelu(made())
gelu behind a bias: onnxruntime:BiasGeluFusion onnxruntime:GeluApproximation
    x = tokens(); gelu(Tanh(x) + row(x))
gelu by tanh: onnxruntime:FastGeluFusion tflite:Gelu
    x = made(); read(x * 0.5 * (Tanh((x + 0.044715 * Pow(x, 3)) * sqrt(2 / pi)) + 1))
gelu by sigmoid: onnxruntime:QuickGeluFusion
    x = some(); x * Sigmoid(x * 1.702)
silu: onnxruntime:QuickGeluFusion inductor:pointwise xla:logistic-expander
    silu(some())
sigmoid by exp: xla:logistic-expander relax:FastMathTransform
    1 / (1 + Exp(-Tanh(some())))
hard swish by clip: tflite:HardSwish onnxruntime:FuseReluClip
    x = some(); x * (Clip(Relu(x + 3), 0, 6) / 6)
hard swish by hard sigmoid: tflite:HardSwish
    x = some(); x * HardSigmoid(x, alpha=1 / 6, beta=0.5)
mish by softplus: inductor:pointwise relax:FastMathTransform
    x = some(); x * Tanh(Softplus(x))
softmax written out: inductor:online_softmax xla:softmax-rewriter relax:FastMathTransform
    x = some(rank=(2, 3, 4)); e = Exp(x - ReduceMax(x, axes=(-1,))); e / ReduceSum(e, axes=(-1,))
relu and clip: onnxruntime:FuseReluClip tflite:FuseRelu6
    Clip(Relu(some(HALVES)), one(-1, 0, 0.5), 6)
leaky relu by max: tflite:LeakyRelu inductor:pointwise
    x = some(); Max(x, x * one(0.01, 0.2))
prelu by two relus: tflite:PRelu
    x = image(); Relu(x) + Relu(-x) * -channelwise(x)
softmax behind a mask: inductor:online_softmax
    x = some(rank=4, least=2); n, h, t, s = sizes(x); Softmax(x + new(n, 1, t, s), axis=-1)
fast functions in a row: relax:FastMathTransform
    e = Exp(Tanh(some())); one(Erf(e), Tanh(e))
layer_norm(x):  # with constant factors
    LayerNormalization(x, row(x), row(x), axis=-1)
rms_norm(x):  # written out, with a constant factor
    x / Sqrt(ReduceMean(Pow(x, 2), axes=(-1,)) + 1e-5) * row(x)
batch_norm(x):  # with constant statistics
    c = channels(x); BatchNormalization(x, weight(c), weight(c), weight(c), weight(c, low=0.1))
layer norm written out: onnxruntime:LayerNormFusionL1
    x = rows(); d = x - ReduceMean(x, axes=(-1,))
    d / Sqrt(ReduceMean(Pow(d, 2), axes=(-1,)) + 1e-5) * row(x) + row(x)
l2 norm written out: tflite:L2Normalization
    x = rows(); x / Sqrt(Max(ReduceSum(x * x, axes=(-1,)), 1e-6))
instance norm written out: tflite:InstanceNorm inductor:welford
    x = image(); d = x - ReduceMean(x, axes=(2, 3))
    d * Reciprocal(Sqrt(ReduceMean(d * d, axes=(2, 3)) + 1e-3))
rms norm written out: onnxruntime:SimplifiedLayerNormFusion inductor:rms_norm
    rms_norm(rows())
layer norm of a sum: onnxruntime:SkipLayerNormFusion inductor:welford
    x = tokens(); layer_norm(x + Tanh(x))
layer norm of a sum and a bias: onnxruntime:SkipLayerNormFusion inductor:welford
    x = tokens(); n, t, d = sizes(x)
    layer_norm(MatMul(x, weight(n, d, d)) + weight(d) + x)  # weights of three axes: no Gemm with the sum
rms norm of a sum: onnxruntime:SimplifiedLayerNormFusion
    x = tokens(); rms_norm(x + Sigmoid(x))
batch norm written out: tflite:FuseBatchNorm inductor:pointwise
    x = image(); variance = weight(channels(x), 1, 1, low=0.1)
    (x - channelwise(x)) / Sqrt(variance + 1e-3) * channelwise(x) + channelwise(x)
instance norm by its operator: inductor:welford tflite:InstanceNorm
    x = image(); c = channels(x); InstanceNormalization(x, weight(c), weight(c))
batch norm alone: relax:DecomposeOpsForInference xla:batchnorm_expander
    batch_norm(image())
""")
