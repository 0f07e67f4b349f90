"""Convolutions and what is folded into them."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import written_patterns

written_patterns("""
channelwise(x):  # a constant for each of an image's channels
    weight(channels(x), 1, 1)
activation(x):  # one that runtimes compute together with what is before it
    one(Relu(x), Sigmoid(x), Tanh(x), LeakyRelu(x, alpha=0.1), Clip(x, 0, 6), HardSigmoid(x, alpha=0.2, beta=0.5))
conv and batch norm: onnxruntime:ConvBNFusion relax:FoldBatchnormToConv2D tflite:FuseBatchNorm
    batch_norm(conv(image(), bias=one(True, False)))
conv, batch norm and activation: onnxruntime:ConvBNFusion inductor:efficient_conv_bn_eval
    activation(batch_norm(conv(image(), bias=False, strides=(2, 2))))
conv and mul: onnxruntime:ConvMulFusion tflite:FuseMulIntoConv inductor:binary_folding
    x = conv(image()); x * channelwise(x)
conv and add: onnxruntime:ConvAddFusion tflite:FuseAddIntoConv inductor:binary_folding
    x = conv(image(), bias=one(True, False)); x + channelwise(x)
conv and div: inductor:binary_folding tflite:FuseBinaryOpToConv
    x = conv(image(), size=1); x / weight(channels(x), 1, 1, low=0.5) - 0.5
mul before conv: tflite:FuseBinaryOpToFollowingConv relax:FoldConstant
    x = image(); conv(x * channelwise(x), pads=(0, 0, 0, 0))
conv and activation: onnxruntime:ConvActivationFusion onnxruntime:NchwcTransformer relax:FuseOps
    activation(conv(image()))
conv, add and relu: onnxruntime:ConvAddActivationFusion onnxruntime:NchwcTransformer
    x = image(); first = conv(x, 4); Relu(conv(x, 4) + first)
conv without padding, add and activation: onnxruntime:ConvAddActivationFusion
    x = image(); n, c, h, w = sizes(x); Relu(Conv(x, weight(3, c, 1, 1)) + new(n, 3, h, w))
blocked convs: onnxruntime:NchwcTransformer relax:ConvertLayout
    x = MaxPool(conv(image(), 16), kernel_shape=(2, 2))
    GlobalAveragePool(Relu(conv(Concat(x, conv(x, 16, 1), axis=1), 16, 1)))
depthwise conv: tflite:DepthwiseConv onnxruntime:NchwcTransformer xla:convolution-group-converter
    c = one(3, 8, 16); activation(conv(conv(image(), c, 1), c, group=c))
pad and conv: onnxruntime:Pad_Fusion tflite:FusePadIntoConv xla:algsimp
    padded = Pad(image(), pads=(0, 0, drawn(0, 2), drawn(0, 2), 0, 0, drawn(0, 2), drawn(0, 2)))
    conv(padded, pads=(0, 0, 0, 0))
pad and pool: onnxruntime:Pad_Fusion xla:algsimp
    padded = Pad(Relu(image()), pads=(0, 0, 1, 1, 0, 0, 1, 1))
    largest = MaxPool(padded, kernel_shape=(3, 3), strides=(2, 2))
    one(largest, AveragePool(padded, kernel_shape=(3, 3), count_include_pad=1))
transposed conv and batch norm: tflite:TransposeConvBias onnxruntime:ConvBNFusion
    x = image(); Relu(batch_norm(ConvTranspose(x, weight(channels(x), 4, 2, 2), strides=(2, 2))))
convs of one image: onnxruntime:NchwcTransformer xla:conv-canonicalization
    x = image(); Concat(conv(x, 4, 1), conv(x, 4, 3), conv(x, 2, 1), axis=1)
conv between transposes: tflite:TransposeConv relax:ConvertLayout
    Transpose(Relu(conv(Transpose(image(), perm=(0, 3, 1, 2)), 4)), perm=(0, 2, 3, 1))
conv and silu: inductor:pointwise
    silu(conv(image()))
""")
