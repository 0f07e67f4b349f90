"""What's read off ONNX graphs, and built in them."""
