"""Rewrites of ONNX graphs that compute the same, one a file, for converters that don't read all of ONNX."""
