"""ONNX to a SavedModel by onnx2tf."""

from __future__ import annotations

from conrepair.converters.onnx_tensorflow_onnx2tf import onnx2tf_converter

__all__ = ["CONVERTER"]

CONVERTER = onnx2tf_converter("onnx-savedmodel-onnx2tf", "tensorflow", "saved_model")
