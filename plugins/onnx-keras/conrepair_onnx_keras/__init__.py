"""Converts ONNX networks to Keras."""
