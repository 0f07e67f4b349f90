"""ONNX to TFLite, in float, by onnx2tf."""

from __future__ import annotations

from conrepair.converters.onnx_tensorflow_onnx2tf import onnx2tf_converter

__all__ = ["CONVERTER"]

CONVERTER = onnx2tf_converter("onnx-tflite-onnx2tf", "tflite", "model.tflite")
