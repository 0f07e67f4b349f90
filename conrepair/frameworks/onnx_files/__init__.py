"""ONNX files: what they say, what ONNX Runtime reads of them, and their ends as tensors."""
