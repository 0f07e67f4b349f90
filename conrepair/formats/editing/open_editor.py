"""Find a model's editor; import its framework only then."""

from __future__ import annotations

from conrepair.formats.editing.editor import Editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework


def open_editor(model: Model) -> Editor:
    """Read a model to change it; ours are `conrepair.formats.{name}.edit.editor`.

    Args:
        model: Of a format whose files can be changed.

    Raises:
        UsageError: if its format's can't.
        ModelLoadError: if it can't be read.
    """
    return framework(model.framework).editor(model)
