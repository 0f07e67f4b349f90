"""What usual networks are made of."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import written_patterns

written_patterns("""
gated linear unit: relax:CombineParallelMatmul xla:dot-merger
    x = some(rank=(2, 3)); d = width(x); inner = one(2, 4, 8)
    MatMul(silu(MatMul(x, new(d, inner))) * MatMul(x, new(d, inner)), new(inner, d))
gate by a split: inductor:split_cat
    value, gate = Split(linear(tokens(), 8), outputs=2, axis=-1, split=(4, 4)); value * Sigmoid(gate)
residual block: onnxruntime:ConvAddActivationFusion
    x = image(); c = channels(x); kernel = weight(c, c, 3, 3); inner = Relu(Conv(x, kernel, pads=(1, 1, 1, 1)))
    Relu(Conv(inner, kernel, pads=(1, 1, 1, 1)) + x)
residual block with batch norms: onnxruntime:ConvBNFusion relax:FoldBatchnormToConv2D
    x = image(); inner = Relu(batch_norm(conv(x, 4, bias=False)))
    Relu(batch_norm(conv(inner, channels(x), bias=False)) + x)
squeeze and excitation: tflite:HardSwish onnxruntime:ConvActivationFusion
    x = image(); excited = conv(Relu(conv(GlobalAveragePool(x), 2, 1)), channels(x), 1)
    x * one(Sigmoid(excited), HardSigmoid(excited))
inverted residual: onnxruntime:ConvActivationFusion onnxruntime:NchwcTransformer
    x = image(); wide = Clip(conv(x, 8, 1), min=0, max=6); deep = Clip(conv(wide, 8, group=8), min=0, max=6)
    conv(deep, channels(x), 1) + x
upsampled and joined: onnxruntime:NchwcTransformer tflite:ResizeNearest
    small = MaxPool(conv(image(), 8), kernel_shape=(2, 2), strides=(2, 2), ceil_mode=1); n, c, h, w = sizes(small)
    large = Resize(small, scales=(1.0, 1.0, 2.0, 2.0), mode=one("nearest", "linear"))
    conv(Concat(large, new(n, 4, 2 * h, 2 * w), axis=1), 4)
classifier's head: tflite:FuseFullyConnectedAndAdd xla:algsimp
    flat = Flatten(GlobalAveragePool(image()), axis=1)
    Softmax(Gemm(flat, weight(5, width(flat)), weight(5), transB=1), axis=-1)
recurrent cell written out: tflite:UnidirectionalLSTM inductor:split_cat
    x = matrix(); n, d = sizes(x); gates = linear(x, 12) + product(new(n, 3), 12)
    i, f, g, o = Split(gates, outputs=4, axis=1, split=(3, 3, 3, 3))
    Sigmoid(o) * Tanh(Sigmoid(f) * new(n, 3) + Sigmoid(i) * Tanh(g))
gated recurrent cell: tflite:UnidirectionalGRU inductor:pointwise
    x = matrix(); n, d = sizes(x); state = new(n, 4)
    gate = Sigmoid(linear(x, 4) + product(state, 4)); gate * state + (1 - gate) * Tanh(linear(x, 4))
pyramid of pools: inductor:pointwise_cat
    x = image(); first = MaxPool(x, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    Concat(x, first, MaxPool(first, kernel_shape=(3, 3), pads=(1, 1, 1, 1)), axis=1)
""")
