"""From an ONNX graph to a functional Keras model: weights in real layers, the rest through `keras.ops`."""
