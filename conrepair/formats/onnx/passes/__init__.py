"""Rewrites of ONNX graphs."""
