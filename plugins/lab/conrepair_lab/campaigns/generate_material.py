"""What networks are made of besides specifications: models are found, and what's in them is learned once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from conrepair.application.engine.problems import entry_of
from conrepair.application.engine.session import Session
from conrepair.application.engine.task import Task
from conrepair.formats.models.identity import model_sha256
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.whole import HashedPath
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.generate.generated import versions
from conrepair_lab.generate.learned.cases import case_instances
from conrepair_lab.generate.learned.instances import Instance, instances_of, text_of_instances
from conrepair_lab.generate.learned.placing import Learned
from conrepair_lab.generate.learned.trying import harvest
from conrepair_lab.generate.networks import Material
from conrepair_lab.generate.real.growth import GrowingModel
from conrepair_lab.generate.real.opened import opened
from conrepair_lab.generate.wishes import Wishes
from conrepair_lab.options.generate import CASES

_KIND = "learn"
_SECONDS = 1800.0


@dataclass(frozen=True)
class MaterialFiles:
    """Models that are named.

    Attributes:
        cases: Whether ONNX's own cases are learned, too.
        learned: Models of which operators are learned.
        models: Models that networks are grown from.
    """

    cases: bool = False
    learned: tuple[Path, ...] = ()
    models: tuple[Path, ...] = ()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What networks depend on: nothing where no model is named."""
        learned = [*([CASES] if self.cases else []), *map(model_sha256, self.learned)]
        models = [*map(model_sha256, self.models)]
        return {**({"learned": learned} if learned else {}), **({"grown from": models} if models else {})}

    def check(self, wishes: Wishes) -> None:
        """Refuse wishes that aren't met of networks that are grown from models.

        Raises:
            UsageError: if so.
        """
        if self.models and wishes.single:
            raise UsageError(
                "single and grown_from (--from) exclude each other: networks of one input and output aren't made "
                "from models."
            )

    def instances(self, display: ProgressDisplay) -> tuple[Instance, ...]:
        """All that's learned, in workers; what was learned before of the same files is in the user's cache.

        Raises:
            ConrepairError: if a model can't be read or computed.
        """
        found = list(case_instances()) if self.cases else []
        tasks = [_task(path) for path in self.learned]
        if tasks:
            with Session(keeps=True) as session:
                results = session.results(tasks, _KIND, display)
            for item in tasks:
                found += instances_of(entry_of(results[item.name], item.name).read(str))
        return tuple(found)


def material_files(learned: Sequence[str | Path], models: Sequence[str | Path], base: Path) -> MaterialFiles:
    """Find the models that are named.

    Args:
        learned: To learn of: files, folders of them, or `CASES`.
        models: To grow from: files, or folders of them.
        base: Folder that relative paths start from.

    Raises:
        UsageError: if there's none where there should be.
    """
    return MaterialFiles(
        CASES in learned,
        tuple(path for text in learned if text != CASES for path in _models(base / text)),
        tuple(path for text in models for path in _models(base / text)),
    )


def material_of(files: MaterialFiles, instances: Sequence[Instance], opset: int) -> Material:
    """What networks are made of, in this process.

    Args:
        files: That are named.
        instances: That were learned of them.
        opset: Of the networks.

    Raises:
        UsageError: if a model can't be read or computed.
    """
    return Material(
        Learned(tuple(instances)) if instances else None,
        tuple(GrowingModel(opened(path, opset)) for path in files.models),
    )


def learn(folder: Path, model: HashedPath, versions: Mapping[str, str]) -> str:
    """Learn of a model.

    Args:
        folder: Not used.
        model: An ONNX file.
        versions: That the answers depend on.

    Returns:
        What was learned, as `text_of_instances` has it.
    """
    return text_of_instances(harvest([Path(model.path)]))


@cache
def material_at(models: tuple[str, ...], instances: str, opset: int) -> Material:
    """What the networks of a job are made of.

    Args:
        models: Paths of models to grow from.
        instances: Path of what was learned.
        opset: Of the networks.
    """
    found = instances_of(Path(instances).read_text(encoding="utf-8"))
    return material_of(MaterialFiles(models=tuple(map(Path, models))), found, opset)


def _task(path: Path) -> Task:
    payload = {"model": HashedPath(str(path), model_sha256(path)), "versions": versions()}
    return Task(str(path), _KIND, lambda _: payload, needs=frozenset({"onnx"}), timeout=_SECONDS)


def _models(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path.absolute()
        return
    found = sorted(path.rglob("*.onnx")) if path.is_dir() else []
    if not found:
        what = "has no .onnx file" if path.is_dir() else "is no file or folder"
        raise UsageError(f"{path} {what}. Give an ONNX model, a folder of them, or {CASES!r} for ONNX's own cases.")
    yield from (item.absolute() for item in found)
