"""Normalizations: written out, and with what stands before them."""

from __future__ import annotations

from conrepair.generate.patterns.pattern import written_patterns

written_patterns("""
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
