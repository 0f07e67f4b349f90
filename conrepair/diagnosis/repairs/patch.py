"""A list of edits, to apply to a fresh copy of a model, and to keep in a file."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.diagnosis.localization.result import Rule
from conrepair.diagnosis.repairs import edits
from conrepair.diagnosis.repairs.edits import Edit, FileEdit, SetRecipe
from conrepair.diagnosis.repairs.outcomes import CONVERTED, RECIPE
from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.identity import model_files
from conrepair.formats.models.model import Model
from conrepair.ground.data.pictures.recipe import Recipe, write_recipe
from conrepair.ground.data.stored_values import read_arrays
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of

_VERSION = 1
_KINDS = {kind.__name__: kind for kind in edits.EDITS}


@dataclass(frozen=True)
class Patch:
    """What is changed in a model.

    Attributes:
        edits: In the order in which they're made.
    """

    edits: tuple[Edit, ...] = ()

    @property
    def of_file(self) -> tuple[FileEdit, ...]:
        """The edits that change the model's file."""
        return tuple(edit for edit in self.edits if not isinstance(edit, SetRecipe))

    @property
    def recipe(self) -> Recipe | None:
        """By which the model is to be fed; None where that stays as it was."""
        return next((edit.recipe for edit in self.edits if isinstance(edit, SetRecipe)), None)

    @property
    def digest(self) -> str:
        """The same for patches that change the same, down to each number."""
        arrays: dict[str, Any] = {}
        listing = _as_json(self.edits, arrays)
        found = hashlib.sha256(json.dumps(listing).encode())
        for array in arrays.values():
            found.update(f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def apply(self, model: Model, folder: Path, stem: str) -> Model:
        """Write a changed copy; the model's own file stays as it is.

        Args:
            model: As it came.
            folder: Receives the copy.
            stem: Its name without the suffix.

        Raises:
            NotEditableError: if its format can't express an edit.
            UsageError: if there's no editor for its format.
        """
        sizes = tuple(edit for edit in self.of_file if isinstance(edit, edits.SetInputShapes))
        others = tuple(edit for edit in self.of_file if not isinstance(edit, edits.SetInputShapes))
        if not sizes or not others:
            return self.make(open_editor(model), folder, stem)
        with tempfile.TemporaryDirectory(dir=folder) as room:
            # Other edits name what is in the network with these sizes.
            resized = Patch(sizes).make(open_editor(model), Path(room), stem)
            return Patch(others).make(open_editor(resized), folder, stem)

    def make(self, editor: Editor, folder: Path, stem: str, *, whole: bool = True) -> Model:
        """The same, with an editor of the model, that's used up by that.

        Args:
            editor: Of the model as it came.
            folder: Receives the copy.
            stem: Its name without the suffix.
            whole: Whether what isn't changed is written, too, where the format leaves a choice.

        Raises:
            NotEditableError: if its format can't express an edit.
        """
        for edit in self.of_file:
            edits.apply(edit, editor)
        return editor.save(folder, stem) if whole else editor.save_changes(folder, stem)


def write_patch(
    patch: Patch, path: Path, target_hash: str, effects: Sequence[str] = (), rules: Sequence[Rule] = ()
) -> None:
    """Write a patch, its arrays beside it (`<stem>.npz`), and the recipe that it sets (`recipe.json`).

    Args:
        patch: What to write.
        path: Of the JSON file.
        target_hash: sha256 of the model that it's for.
        effects: What each step that led to it does, and bought, in words.
        rules: What it fixes that was wrong in many places, with the places.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    listing = _as_json(patch.edits, arrays)
    name = _arrays_of(path).name if arrays else None
    if name is not None:
        np.savez(_arrays_of(path), **arrays)  # type: ignore[arg-type]
    content = {"version": _VERSION, "target_sha256": target_hash, "arrays": name, "edits": listing}
    content["effects"] = list(effects)
    content["rules"] = [{"rule": rule.text, "kind": rule.kind, "layers": list(rule.layers)} for rule in rules]
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    if patch.recipe is not None:
        write_recipe(patch.recipe, path.with_name(RECIPE))


def patch_files(path: Path) -> list[Path]:
    """The files of a patch that was written: its JSON, and beside it arrays, a recipe, a converted model."""
    beside = (path, _arrays_of(path), path.with_name(RECIPE), *model_files(path.with_name(CONVERTED)))
    return [file for file in beside if file.exists()]


def _arrays_of(path: Path) -> Path:
    return path.with_suffix(".npz")


def read_patch(path: Path) -> tuple[Patch, str]:
    """Read what `write_patch` wrote.

    Returns:
        The patch, and the sha256 of the model that it's for.

    Raises:
        DataError: if the file is no patch.
    """
    try:
        content = value_of(read_json_text(path))
        if content["version"] != _VERSION:
            words = f"{path} is a patch of version {content['version']}, and version {_VERSION} is read here."
            raise DataError(f"{words} Repair the model again.")
        arrays: Mapping[str, Any] = {}
        if content["arrays"] is not None:
            arrays = read_arrays(path.with_name(Path(content["arrays"]).name))
        return Patch(tuple(_from_json(entry, arrays) for entry in content["edits"])), str(content["target_sha256"])
    except (OSError, ValueError, EOFError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} can't be read as a patch: {type(error).__name__}: {error}") from error


def _as_json(made: Sequence[Edit], arrays: dict[str, Any]) -> Any:
    def in_parts(value: Any) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        if not isinstance(value, np.ndarray):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        arrays[name := f"array_{len(arrays)}"] = value
        return {"array": name}

    named = [{"edit": type(edit).__name__, **vars(edit)} for edit in made]
    return json.loads(json.dumps(named, default=in_parts))


def _from_json(entry: Mapping[str, Any], arrays: Mapping[str, Any]) -> Edit:
    kind = _KINDS[entry["edit"]]
    given = {name: _back(value, arrays) for name, value in entry.items() if name != "edit"}
    if kind in {edits.Graft, edits.ComputeInFloat, edits.AddOutput}:
        given["operations"] = tuple(Operation(**item) for item in given.get("operations", ()))
    if kind is SetRecipe:
        given["recipe"] = Recipe(**given["recipe"])
    edit: Edit = kind(**given)
    return edit


def _back(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"array"}:
            return arrays[value["array"]]
        return {name: _back(item, arrays) for name, item in value.items()}
    if isinstance(value, list):
        return tuple(_back(item, arrays) for item in value)
    return value
