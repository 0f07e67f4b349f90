"""ONNX files: load, read, edit."""
