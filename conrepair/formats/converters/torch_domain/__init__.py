"""An ONNX domain of operators that onnx2torch is taught: sizes stay integers or torch.export's symbols."""
