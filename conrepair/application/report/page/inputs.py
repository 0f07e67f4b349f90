"""The table of inputs: those that differ most, with their pictures where these are still there."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError

from conrepair.application.report.result import AuditResult, Row
from conrepair.ground.runtime.path_text import path_problem
from conrepair.verdicts.evaluate.inputs import ComparedInput

_MOST, _PICTURES = 500, 60
_SIDE = 72  # pixels


@dataclass(frozen=True, kw_only=True)
class ShownInput:
    """An input.

    Attributes:
        compared: What both sides make of it.
        repaired: The same of the repaired target; None where there's none.
        picture: A small copy as a data URL; "" without.
    """

    compared: ComparedInput
    repaired: ComparedInput | None = None
    picture: str = ""

    @property
    def differs(self) -> bool:
        """Whether it's answered otherwise than by the source, by the target as it came or as it was repaired."""
        return bool(self.compared.differs or (self.repaired is not None and self.repaired.differs))


@dataclass(frozen=True, kw_only=True)
class ShownInputs:
    """Those of a row.

    Attributes:
        inputs: Those that differ most first.
        all: How many there are.
        classes: Whether outputs are scores of classes.
        labels: Whether any is labelled.
        missing: Of how many pictures the file is gone.
    """

    inputs: tuple[ShownInput, ...]
    all: int
    classes: bool
    labels: bool
    missing: int = 0

    @property
    def repaired(self) -> tuple[ComparedInput, ...]:
        """What the source and the repaired target make of them; none where there's no such target."""
        return tuple(item.repaired for item in self.inputs if item.repaired is not None)


def shown_inputs(row: Row, result: AuditResult, photos: Sequence[Path] | None) -> ShownInputs | None:
    """What the table shows of a row; None where nothing was compared.

    Args:
        row: Of a target.
        result: That it belongs to.
        photos: Folders that are looked into for them; None: those that the configuration names. Folders that a saved
            document names aren't looked into, as anybody may have written it.
    """
    if not row.inputs:
        return None
    folders, shown, missing = named_folders(result.config) if photos is None else photos, [], 0
    repaired = {item.index: item for item in row.repaired.inputs}
    pictured = bool(folders) and result.recipes.get(row.reference) is not None
    for place, compared in enumerate(row.inputs[:_MOST]):
        picture = ""
        if pictured and place < _PICTURES:
            picture = next(filter(None, (_picture(folder, compared.name) for folder in folders)), "")
            missing += not picture
        shown.append(ShownInput(compared=compared, repaired=repaired.get(compared.index), picture=picture))
    return ShownInputs(
        inputs=tuple(shown),
        all=len(row.inputs) if row.ran.run is None else row.ran.run.count,
        classes=any(item.differs is not None for item in row.inputs),
        labels=any(item.label is not None for item in row.inputs),
        missing=missing,
    )


def named_folders(config: Mapping[str, Any]) -> tuple[Path, ...]:
    """Folders of photos by a result's configuration: of two files `data` says it, of an audit its data sets.

    Args:
        config: As a document may have it: of any form.
    """
    models = config.get("models")
    holders = [config, *(models if isinstance(models, list | tuple) else ())]
    datasets = [holder.get("dataset") for holder in holders if isinstance(holder, Mapping)]
    named = [config.get("data"), *(dataset.get("folder") for dataset in datasets if isinstance(dataset, Mapping))]
    return tuple(Path(name) for name in named if isinstance(name, str))


def _picture(folder: Path, name: str) -> str:
    """A small copy; "" where the folder has no such file, or none that's a picture."""
    path = folder / name
    outside = Path(name).is_absolute() or ".." in Path(name).parts
    if outside or path_problem(str(path)) or not path.is_file():
        return ""
    try:
        with Image.open(path) as image:
            image.draft("RGB", (_SIDE, _SIDE))
            small = image.convert("RGB")
            small.thumbnail((_SIDE, _SIDE))
    except (OSError, ValueError, UnidentifiedImageError, Image.DecompressionBombError):
        return ""
    stream = io.BytesIO()
    small.save(stream, "JPEG", quality=70)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"
