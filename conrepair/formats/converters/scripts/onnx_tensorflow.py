"""ONNX to a SavedModel and TFLite by onnx2tf; runs in the environment `onnx2tf`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

# onnx2tf tries NHWC pictures of this name, in the working directory, before it downloads them.
_PICTURES = "calibration_image_sample_data_20x128x128x3_float32.npy"


def main(arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert a model.

    Args:
        arguments: "model" (an ONNX file, which may be written to), "output" (the file or folder to write), "target"
            ("tflite" or "tensorflow"), "batch" (0 leaves a symbolic one), "simplify".
    """
    import numpy as np
    import onnx2tf

    np.random.seed(0)  # noqa: NPY002 (the tool's own dummy inputs, which decide on layouts, come from here)
    pictures = np.random.default_rng(0).random((20, 128, 128, 3), dtype=np.float32)
    np.save(_PICTURES, pictures)
    made = Path("made")
    onnx2tf.convert(
        input_onnx_file_path=arguments["model"],
        output_folder_path=str(made),
        output_signaturedefs=True,
        not_use_onnxsim=not arguments["simplify"],
        batch_size=arguments["batch"] or None,
        verbosity="error",
    )
    if arguments["target"] == "tflite":
        shutil.move(float32_file(made), arguments["output"])
        return {}
    for other in made.glob("*.tflite"):
        other.unlink()
    shutil.move(made, arguments["output"])
    return {}


def float32_file(folder: Path) -> Path:
    """The TFLite file in float32 among those that the tool wrote.

    Raises:
        FileNotFoundError: if there's none; says what there is.
    """
    found = sorted(folder.glob("*_float32.tflite"))
    if not found:
        there = ", ".join(sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()))
        raise FileNotFoundError(
            f"the tool wrote no float32 file (*_float32.tflite), only: {there or 'nothing'}. "
            "Its last words may say why."
        )
    return found[0]
