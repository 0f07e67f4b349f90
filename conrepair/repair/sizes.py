"""Give a target's inputs the sizes that its source is fed with, where they're declared otherwise."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path

from conrepair.data.declared_sizes import Sizes, sizes_wanted
from conrepair.data.tensor_spec import TensorSpec
from conrepair.editors.editor import Editor
from conrepair.editors.operation import NotEditableError
from conrepair.editors.registry import open_editor
from conrepair.frameworks.registry import framework
from conrepair.localize.input_sizes import of_other_sizes
from conrepair.localize.models import Subject, as_fed
from conrepair.localize.options import Options
from conrepair.localize.result import Localization
from conrepair.repair.edits import SetInputShapes
from conrepair.repair.patch import Patch
from conrepair.repair.preparation import fed_by
from conrepair.runtime.errors import ConrepairError

__all__ = ["OtherSizes", "mend_sizes", "other_sizes"]

_STEM = "repaired"  # as what's behind it in a file of weights is called


@dataclass(frozen=True)
class OtherSizes:
    """A target that can't take what its source is fed, for the sizes that it declares.

    Attributes:
        wanted: Sizes that it would have to declare.
        found: What is said of it.
    """

    wanted: Sizes
    found: Localization


def other_sizes(source: Subject, target: Subject, options: Options) -> OtherSizes | None:
    """Whether a target's inputs are of other sizes than its source's; None where they aren't.

    Args:
        source: The model that is right.
        target: The model in question.
        options: Of the localization.

    Raises:
        DataError: if the source can't take the data.
    """
    wanted = sizes_wanted(as_fed(source), target.inputs)
    return (
        None if wanted is None else OtherSizes(wanted, of_other_sizes(source.inputs, target.inputs, wanted, options))
    )


def mend_sizes(source: Subject, target: Subject, sizes: OtherSizes, folder: Path) -> tuple[SetInputShapes, Subject]:
    """A copy of a target with its source's sizes, and what it's fed then.

    Args:
        source: The model that is right.
        target: The model in question.
        sizes: Of `other_sizes`.
        folder: Receives the copy, and photos in its size.

    Raises:
        NotEditableError: if the format can't, or the network doesn't take these sizes.
        UsageError: if models of its format can't be edited.
        ModelLoadError: if it can't be read.
    """
    editor = open_editor(target.model)
    edit = SetInputShapes(_in_order(editor, target.inputs, sizes.wanted))
    patch = Patch((edit,))
    made = patch.make(editor, folder, _STEM)
    # By what it's made of: Keras and TensorFlow write other bytes each time, and a search that goes on must know it.
    model = dataclasses.replace(
        made, sha256=hashlib.sha256(f"{target.model.sha256} {patch.digest}".encode()).hexdigest()
    )
    inputs = tuple(
        dataclasses.replace(
            spec, shape=tuple(old if new is None else new for old, new in zip(spec.shape, shape, strict=True))
        )
        for spec, shape in zip(target.inputs, sizes.wanted, strict=True)
    )
    resized = dataclasses.replace(target, model=model, inputs=inputs)
    try:
        framework(model.framework).load(model)
    except ConrepairError as error:
        raise NotEditableError(f"with the source's sizes of its inputs it can't be loaded: {error}") from error
    if target.recipe is None or source.recipe is None:
        return edit, dataclasses.replace(resized, data=source.data)
    recipe = dataclasses.replace(target.recipe, size=source.recipe.size)
    fed = fed_by(recipe, source, resized, folder / "photos")
    if fed is None:
        raise NotEditableError("there are no photos to prepare in the source's size")
    return edit, fed


def _in_order(editor: Editor, inputs: tuple[TensorSpec, ...], wanted: Sizes) -> Sizes:
    """The sizes in the order of the file's inputs."""
    names = editor.graph.inputs
    given = {spec.name: shape for spec, shape in zip(inputs, wanted, strict=True)}
    if set(given) == set(names):
        return tuple(given[name] for name in names)
    fits = [
        known is not None and len(known) == len(spec.shape) and all(
            not isinstance(size, int) or size == held for size, held in zip(spec.shape, known, strict=True)
        )
        for spec, known in zip(inputs, (editor.graph.tensors[name].shape for name in names), strict=True)
    ]  # fmt: skip
    if not all(fits):
        raise NotEditableError(f"which of the inputs {', '.join(names)} is which isn't known")
    return wanted
