"""ONNX files: described, screened, loaded and run."""
