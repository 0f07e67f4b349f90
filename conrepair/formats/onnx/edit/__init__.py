"""Changes of ONNX files in their own format."""
