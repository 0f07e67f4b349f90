"""Find a model's editor; import its framework only then."""

from __future__ import annotations

import importlib
from typing import cast

from conrepair.formats.editing.editor import Editor
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import UsageError

EDITABLE = ("onnx", "torch", "keras", "tflite", "tensorflow")


def open_editor(model: Model) -> Editor:
    """Read a model to change it.

    Args:
        model: In one of the frameworks `EDITABLE`.

    Raises:
        UsageError: if its framework has no editor.
        ModelLoadError: if it can't be read.
    """
    if model.framework not in EDITABLE:
        raise UsageError(
            f"{model.path}: there is no editor for {model.framework}; there is for {', '.join(EDITABLE)}."
        )
    return cast(Editor, importlib.import_module(f"conrepair.formats.{model.framework}.edit.editor").EDITOR(model))
