"""Operators as they were seen: in ONNX's own cases, and in models of the user. They're placed as they are."""
