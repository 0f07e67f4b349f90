"""Which files that a result names are read for its report: of a saved one, that anybody may have written, few."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.formats.models.identity import model_files, model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.path_text import path_problem

_MOST = 2 << 30  # bytes of a model that is hashed to make colours for it


@dataclass(frozen=True, kw_only=True)
class Readable:
    """What may be read outside of the run's folder.

    Attributes:
        saved: Whether the result comes from a document. A model is read then where its SHA-256 is the one that the
            document tells: who wrote that knows what is in it.
        photos: Folders that a person names for photos; those that a document names aren't looked into.
    """

    saved: bool = False
    photos: tuple[Path, ...] = ()

    def photo_folders(self, config: Mapping[str, Any]) -> tuple[Path, ...]:
        """Where photos may lie.

        Args:
            config: Of the result.
        """
        return self.photos if self.saved else named_folders(config)

    def knows(self, model: Model) -> bool:
        """Whether a model's file may be read, and is there.

        Args:
            model: That the result names.
        """
        path = Path(model.path)
        if path_problem(model.path) or not path.is_file():
            return False
        if not self.saved:
            return True
        if path.stat().st_size > _MOST or sum(file.stat().st_size for file in model_files(path)) > _MOST:
            return False
        return model_sha256(path) == model.sha256


OURS = Readable()
"""Of a run that was just made."""


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
