"""Put a fault into a model file of any format that can be edited, and make sure that it changes the function."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.noting import new_layers, noted
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.onnx.passes.verify import relative_error
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.files.whole import make_folder

__all__ = ["ATTEMPTS", "LEAST_EFFECT", "FileInjection", "has_place", "inject_file"]

LEAST_EFFECT = 1e-4  # relative L2 of an output
ATTEMPTS = 8
_REFUSALS = 64  # places at which a format can't express the fault, before giving up


@dataclass(frozen=True)
class FileInjection:
    """A model file with a fault.

    Attributes:
        model: The faulty model, to load or to inject another fault into.
        fault: Which fault it has.
        layers: Names of the layers at fault as in the file: ONNX nodes; TFLite output tensors; Keras layers;
            PyTorch's fx nodes and the paths of their modules. Of removed ones, the neighbours'.
        words: What was done.
        effect: Relative L2 of the output that changed most; infinite where values stopped being finite.
    """

    model: Model
    fault: Fault
    layers: frozenset[str]
    words: str
    effect: float

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.model.path)

    @property
    def kind(self) -> Kind:
        """What a diagnosis should call it."""
        return self.fault.kind


def inject_file(
    model: Model,
    fault: Fault,
    feeds: Mapping[str, Array],
    generator: np.random.Generator,
    folder: Path,
    *,
    avoid: frozenset[str] = frozenset(),
) -> FileInjection | None:
    """Inject a fault into a copy of a model file.

    Args:
        model: A model that is right; its file isn't changed.
        fault: What to inject.
        feeds: Inputs on which the model must answer otherwise, by name.
        generator: Decides about the place, and about what the fault leaves open.
        folder: Receives the file, which is named after the model's and the fault.
        avoid: Layers that must not be touched, because they have a fault already.

    Returns:
        The faulty model; None when the fault has no place in this model, or none where it changes an answer
        (several are tried).

    Raises:
        UsageError: if models of this framework can't be edited.
        ModelLoadError: if the model can't be read.
        InferenceError: if the right model doesn't run on the feeds.
    """
    make_folder(folder)
    stem = f"{Path(model.path).stem}.{fault.name}"
    editor = open_editor(model)
    touched = noted(editor)
    count = len(fault.native.places(editor.graph))
    if not count:
        return None
    feeds, expected = _reference(model, feeds)
    attempts = 0
    for index in generator.permutation(count)[:_REFUSALS]:
        with tempfile.TemporaryDirectory(dir=folder) as trial:
            try:
                words = fault.native.change(editor, fault.native.places(editor.graph)[int(index)], generator)
                changed = None if touched & avoid else editor.save(Path(trial), stem)
            except NotEditableError:
                changed = None
            effect = None if changed is None else _effect(changed, feeds, expected)
            if changed is not None and effect is not None and effect > LEAST_EFFECT:
                layers = frozenset(touched | new_layers(editor, changed))
                return FileInjection(_kept(changed, folder), fault, layers, words, effect)
        attempts += effect is not None
        if attempts == ATTEMPTS:
            break
        editor = open_editor(model)
        touched = noted(editor)
    return None


def has_place(model: Model, fault: Fault) -> bool:
    """Whether a model has what a fault is about, even where it would change no answer.

    Raises:
        UsageError: if models of this framework can't be edited.
        ModelLoadError: if the model can't be read.
    """
    return bool(fault.native.places(open_editor(model).graph))


def _kept(model: Model, folder: Path) -> Model:
    """The model, moved out of the folder where it was tried."""
    for path in Path(model.path).parent.iterdir():  # numbers may lie beside it
        path.replace(folder / path.name)
    return replace(model, path=str(folder / Path(model.path).name))


def _effect(model: Model, feeds: Mapping[str, Array], expected: Sequence[Array]) -> float | None:
    """How much the outputs change; None when the model can't be loaded any more, or gives other shapes."""
    try:
        results = _run(model, list(feeds.values()))
    # Whatever a framework says about the changed model, it's no valid place.
    except Exception:  # noqa: BLE001
        return None
    if [item.shape for item in results] != [item.shape for item in expected]:
        return None
    return max(map(relative_error, expected, results), default=0.0)


def _reference(model: Model, feeds: Mapping[str, Array]) -> tuple[dict[str, Array], list[Array]]:
    """Feeds in the order of the model's inputs, and what it gives."""
    runnable = framework(model.framework).load(model)
    outputs = runnable.run(feeds)
    ordered = {spec.name: feeds[spec.name] for spec in runnable.inputs}
    return ordered, [outputs[spec.name] for spec in runnable.outputs]


def _run(model: Model, arrays: Sequence[Array]) -> list[Array]:
    """Feed arrays in the order of the inputs: an export may call them otherwise."""
    runnable = framework(model.framework).load(model)
    outputs = runnable.run(dict(zip([spec.name for spec in runnable.inputs], arrays, strict=True)))
    return [outputs[spec.name] for spec in runnable.outputs]
