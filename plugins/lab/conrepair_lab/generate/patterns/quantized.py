"""Quantized networks: operators between conversions to eight bits and back, and integer products."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import written_patterns

written_patterns("""
requantized(x):  # as eight bits and back, as quantized networks have it between all operators
    dequantized(quantized(x))
small_weight(shape):
    dequantized(weight(shape, dtype="int8", low=-20, high=20), 0.02)
small_bias(count):
    dequantized(weight(count, dtype="int32", low=-100, high=100), 0.05 * 0.02)
image_of_bits():
    requantized(image())
quantized_product(x):
    MatMul(x, small_weight(shape(width(x), 4)))
integer_product(x, scale, zero):  # a product of integers as a float, with a bias at times
    product = MatMulInteger(x, weight(width(x), 4, dtype="int8", low=-20, high=20), zero)
    scaled = cast(product, "float32") * (scale * 0.02); one(scaled, scaled + weight(4))
quantized conv: onnxruntime:QDQSelectorActionTransformer onnxruntime:NhwcTransformer \
inductor:quantization tflite:QuantizeConv
    x = image_of_bits(); y = Conv(x, small_weight(shape(4, channels(x), 3, 3)), small_bias(4), pads=(1, 1, 1, 1))
    requantized(one(y, Relu(y)))
quantized conv with a float bias: onnxruntime:WeightBiasQuantization onnxruntime:QDQSelectorActionTransformer
    x = image_of_bits(); requantized(Conv(x, small_weight(shape(4, channels(x), 1, 1)), weight(4)))
signed quantized product: onnxruntime:QDQS8ToU8Transformer onnxruntime:QDQSelectorActionTransformer \
tflite:QuantizeFullyConnected
    y = quantized_product(dequantized(quantized(matrix(), "int8"))); dequantized(quantized(y, "int8"))
quantized gemm: onnxruntime:QDQSelectorActionTransformer tflite:QuantizeFullyConnected
    x = requantized(matrix()); requantized(Gemm(x, small_weight(shape(4, width(x))), small_bias(4), transB=1))
quantized product, float result: onnxruntime:QDQSelectorActionTransformer
    quantized_product(requantized(rows()))
quantized sum: onnxruntime:QDQSelectorActionTransformer tflite:QuantizeAdd inductor:quantization
    x = some(); a = requantized(x); b = requantized(like(x)); requantized(one(a + b, a * b))
quantized pool: onnxruntime:QDQSelectorActionTransformer tflite:QuantizePool
    x = image_of_bits(); small = one(MaxPool(x, kernel_shape=(2, 2)), AveragePool(x, kernel_shape=(2, 2)))
    requantized(one(small, small, GlobalAveragePool(x)))
quantized activation: onnxruntime:QDQSelectorActionTransformer tflite:QuantizeActivation
    x = requantized(some()); requantized(one(Sigmoid(x), LeakyRelu(x), Softmax(x)))
quantized concat: onnxruntime:QDQSelectorActionTransformer tflite:PropagateQuantization
    x = some(); requantized(Concat(requantized(x), requantized(like(x)), axis=0))
clip before quantizing: onnxruntime:ClipQuantRewrite tflite:PropagateQuantization
    read(requantized(Clip(made(), min=-20, max=20)))
relu before quantizing: onnxruntime:ReluQuantRewrite tflite:PropagateQuantization
    dequantized(quantized(Relu(made()), zero=0), zero=0)
quantized twice: onnxruntime:DoubleQDQPairsRemover onnxruntime:QDQFinalCleanupTransformer
    Relu(requantized(requantized(some())))
back and forth: onnxruntime:QDQFinalCleanupTransformer tflite:RemoveDequantizeQuantize
    quantized(dequantized(new(2, 3, dtype="uint8")))
moved between quantizing: onnxruntime:QDQPropagationTransformer onnxruntime:TransposeOptimizer
    flat = Reshape(Transpose(image_of_bits(), perm=(0, 2, 3, 1)), shape=(0, -1)); one(Relu(flat), quantized(flat))
one dequantized tensor for two: onnxruntime:QDQSelectorActionTransformer
    x = requantized(some(rank=(2, 3, 4), least=2)); all(requantized(x * x), requantized(Sigmoid(x)))
where between quantizing: onnxruntime:WhereDummyDq onnxruntime:QDQSelectorActionTransformer
    x = some(); requantized(Where(x > 0, requantized(x), 0.5))
product quantized as it runs: onnxruntime:DynamicQuantizeMatMulFusion inductor:quantization
    bits, scale, zero = DynamicQuantizeLinear(rows(), outputs=3); integer_product(bits, scale, zero)
integer product: onnxruntime:MatMulIntegerToFloatFusion
    x = new(3, 4, dtype="uint8"); scale = new(dtype="float32", values=(0.01, 0.1))
    integer_product(x, scale, constant(3, dtype="uint8"))
""")
