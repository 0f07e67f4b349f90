"""What both converters to TFLite share: quantization, when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import CALIBRATION, Option, calibration_samples
from conrepair.formats.models.model import Description
from conrepair.ground.data.feeds import CalibrationFeeds
from conrepair.ground.runtime.errors import ConfigError, DataError

_FILE = "model.tflite"
_INTENTS = {"none": None, "dynamic": "int8 weights", "float16": "float16", "int8": "int8"}

OPTIONS = {
    "quantize": Option("none", "none, dynamic (int8 weights), float16 (weights) or int8 (all)", tuple(_INTENTS)),
    "unfold": Option(False, "products of batches as products of matrices", alternatives=(False, True)),
    "int8_io": Option(False, "with quantize=int8: integer inputs and outputs too"),
    "uint8_io": Option(False, "the same, of unsigned integers"),
    **CALIBRATION,
}


def intent(options: Mapping[str, Any]) -> str | None:
    """See `Converter.intent`."""
    return _INTENTS[options["quantize"]]


def as_quantized(description: Description) -> Mapping[str, Any] | None:
    """See `Converter.as_quantized`."""
    if not description.quantized:
        return {}
    ends = {spec.dtype for spec in description.inputs if spec.quantization}
    if ends:
        io = f"{min(ends)}_io"
        return {"quantize": "int8", io: True} if io in OPTIONS else None
    return {"quantize": "int8" if "QUANTIZE" in description.operators else "dynamic"}


def calibrates(options: Mapping[str, Any]) -> int:
    """See `Converter.calibrates`: only activations need samples."""
    return calibration_samples(options) if options["quantize"] == "int8" else 0


def write_tflite(
    converter: Any, folder: Path, options: Mapping[str, Any], feeds: CalibrationFeeds | None = None
) -> str:
    """Convert as the options say, and write the file.

    Args:
        converter: A `tf.lite.TFLiteConverter`.
        folder: Receives the file.
        options: Complete.
        feeds: For quantize=int8, by the signature's input names.

    Returns:
        The file's name.

    Raises:
        ConfigError: if integer inputs are asked for without integer kernels.
        DataError: if there's nothing to calibrate with.
    """
    import tensorflow as tf

    kind = options["quantize"]
    ends = [name for name in ("int8_io", "uint8_io") if options[name]]
    if ends and kind != "int8":
        raise ConfigError(f"{ends[0]} goes with quantize=int8, not with quantize={kind}. Set both, or neither.")
    if len(ends) > 1:
        raise ConfigError("int8_io and uint8_io are two types of the same inputs and outputs. Set one of them.")
    if kind == "int8" and feeds is None:
        raise DataError("quantize=int8 needs data to calibrate with: activations get the ranges that it shows.")
    if kind != "none":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if feeds is not None:
        # By name: a list would have to be in the order of the graph's inputs, which isn't always the model's.
        converter.representative_dataset = feeds.__iter__
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if ends:
        dtype = tf.uint8 if options["uint8_io"] else tf.int8
        converter.inference_input_type = converter.inference_output_type = dtype
    converter.unfold_batchmatmul = options["unfold"]
    (folder / _FILE).write_bytes(converter.convert())
    return _FILE
