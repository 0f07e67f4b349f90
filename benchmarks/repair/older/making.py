"""The models that are converted, each made and converted on once, some with a fault.

MobileNetV2 is pretrained. ResNet101 and InceptionV3 have random weights. Such a network gives nearly the same answers
to every photo: what its features have in common over all photos outweighs what they tell apart. So the mean answer on
photos is taken out of its last layer's bias. Its classes still mean nothing, but they differ from photo to photo, and
change with what a network is fed.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.injecting.inject import OWN_FAULTS, inject_by_framework
from benchmarks.common.making import build, convert, photo_inputs, side_of
from benchmarks.common.models import MODELS
from benchmarks.common.unfit import UnfitError
from benchmarks.repair.older.cases import RIGHT, OlderCase
from conrepair.formats.converters.routes import find_route
from conrepair.formats.models.factories import call_factory
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.processes.workers import Job, Success, Workers
from conrepair.ground.runtime.typed import typed

__all__ = ["Made", "NotMadeError", "make", "with_answers"]

_FRAMEWORKS = {"torch": "torch", "keras": "keras", "tf": "tensorflow", "tflite": "tflite"}
_CHAINS = {"torch": (), "keras": ("keras",), "tf": ("keras", "tf"), "tflite": ("keras", "tflite")}
"""How a model of each format is made of PyTorch's."""

_OWN = ("keras", "tflite")  # targets that faults are put into themselves
_MEANS = {"onnx": "by-protobuf", "keras": "by-keras", "tflite": "by-tflite"}
_NAMES = {
    "weights": ("two-filters-exchanged",),
    "hyperparameters": ("dilation", "pads-shifted", "bound", "bound-lost"),
    "structure": ("axes-exchanged",),
    "graph": ("shortcut-missing", "operator-replaced", "activation-missing"),
}
"""Faults of each sort, the first that has a place."""

_TIMEOUT = 1200.0
_PHOTOS, _AT_ONCE, _AT_A_TIME = 24, 8, 2


class NotMadeError(Exception):
    """A model couldn't be made or converted; says by what."""


class Made:
    """Makes what cases need, each side once, and knows where it is.

    Args:
        folder: For models.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, ...], dict[str, Any] | str] = {}
        self._faulty: dict[OlderCase, dict[str, Any] | str] = {}

    def make(self, cases: Iterable[OlderCase], workers: Workers) -> None:
        """Make the sides of cases, and what is on the way to them, where they aren't there yet."""
        for case in cases:
            for key in map(_steps, itertools.repeat(case.model), _chains(case)):
                for end in range(1, len(key) + 1):
                    if key[:end] not in self._known:
                        self._known[key[:end]] = self._made(key[:end], workers)

    def sides(self, case: OlderCase) -> tuple[dict[str, Any], dict[str, Any]]:
        """Source and target of a case; the target by the route that the product takes.

        Raises:
            NotMadeError: if one couldn't be made.
        """
        found = [self._known[_steps(case.model, chain)] for chain in _chains(case)]
        for side in found:
            if isinstance(side, str):
                raise NotMadeError(side)
        source, target = (side for side in found if not isinstance(side, str))
        return source, target

    def put_in(self, case: OlderCase, workers: Workers) -> None:
        """Make the faulty target of a case whose sides are made.

        The fault is put into the file in front of the last conversion; into the target where that's a Keras or TFLite
        file. Neither is done by an editor of repair.
        """
        key = _steps(case.model, _chains(case)[1])
        own = case.target in _OWN
        side = self._known[key if own else key[:-1]]
        if isinstance(side, str) or isinstance(self._known[key], str):
            return
        payload = {"side": side, "fault": case.fault, "converter": "" if own else key[-1], "seed": _seed(case)}
        folder = self._folder / f"faulty-{len(self._faulty)}"
        folder.mkdir(parents=True)
        outcome = workers.call(Job("benchmarks.repair.older.making:make_faulty", payload, folder, timeout=_TIMEOUT))
        self._faulty[case] = outcome.value if isinstance(outcome, Success) else f"{case.fault}: {outcome}"

    def faulty(self, case: OlderCase) -> tuple[dict[str, Any], str]:
        """The target with the fault, and what is wrong with it.

        Raises:
            NotMadeError: if it couldn't be made.
        """
        found = self._faulty.get(case, "the conversion without a fault couldn't be made")
        if isinstance(found, str):
            raise NotMadeError(found)
        return found["side"], found["words"]

    def _made(self, key: tuple[str, ...], workers: Workers) -> dict[str, Any] | str:
        *before, last = key
        payload, function = {"model": last}, "benchmarks.repair.older.making:make"
        if before:
            parent = self._known[tuple(before)]
            if isinstance(parent, str):
                return parent
            payload = {"side": parent, "converter": last, "options": {}}
            function = "benchmarks.common.making:convert"
        folder = self._folder / str(len(self._known))
        folder.mkdir(parents=True)
        outcome = workers.call(Job(function, payload, folder, timeout=_TIMEOUT))
        return outcome.value["side"] if isinstance(outcome, Success) else f"{last}: {outcome}"


def _chains(case: OlderCase) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Through which formats source and target come from PyTorch."""
    return _CHAINS[case.source], (*_CHAINS[case.source], case.target)


def _steps(model: str, formats: Sequence[str]) -> tuple[str, ...]:
    """A model and the converters through formats: of each pair, the route that the product takes."""
    names = [_FRAMEWORKS[form] for form in ("torch", *formats)]
    routes = (find_route(*pair) for pair in itertools.pairwise(names))
    return (model, *(step.name for route in routes for step in route.steps))


def make(folder: Path, **payload: Any) -> dict[str, Any]:
    """In a worker: the network in PyTorch.

    Args:
        payload: "model" (its name).
        folder: Receives its weights.

    Returns:
        "side".
    """
    wanted = MODELS[payload["model"]]
    model = build(wanted, folder)
    if not wanted.pretrained:
        photos = photo_inputs(dataclasses.replace(wanted, recipe=RIGHT, samples=_PHOTOS))
        model = with_answers(model, photos)
    return {"side": side_of(dataclasses.replace(model, inputs=framework("torch").describe(model).inputs))}


def _seed(case: OlderCase) -> int:
    """Another place for each case."""
    return zlib.crc32(case.name.encode())


def make_faulty(folder: Path, **payload: Any) -> dict[str, Any]:
    """In a worker: put a fault into a model, and convert it.

    Args:
        payload: "side", "fault" (its sort), "seed", "converter" ("" for none).
        folder: Receives files.

    Returns:
        "side" and "words".

    Raises:
        UnfitError: if the model has no place for such a fault.
    """
    model = typed(Model, payload["side"]["model"])
    means = _MEANS[model.framework]
    specs = (typed(TensorSpec, spec) for spec in payload["side"]["inputs"])
    feeds = {spec.name: _noise(spec) for spec in specs}
    names = [f"{means}-{name}" for name in _NAMES[payload["fault"]] if f"{means}-{name}" in OWN_FAULTS]
    for place, name in enumerate(names):
        generator = np.random.default_rng(payload["seed"])
        try:
            found = inject_by_framework(model, name, feeds, generator, folder / str(place))
        except UnfitError:
            continue
        side = side_of(found.model)
        if payload["converter"]:
            (folder / "converted").mkdir()
            side = convert(folder / "converted", side=side, converter=payload["converter"], options={})["side"]
        return {"side": side, "words": found.words}
    raise UnfitError("no place", f"none of {', '.join(names)}")


def _noise(spec: TensorSpec) -> np.ndarray:
    shape = [size if isinstance(size, int) else _AT_A_TIME for size in spec.shape]
    return np.random.default_rng(0).standard_normal(shape).astype(spec.dtype)


def with_answers(model: Model, photos: np.ndarray) -> Model:
    """A classifier of random weights that answers differently from photo to photo; its file is written anew.

    Args:
        model: Of PyTorch, with a factory and a state dict; ends in a Linear layer.
        photos: (N, 3, H, W), float32, prepared.

    Raises:
        ValueError: if the network doesn't end in a Linear layer with a bias.
    """
    import torch

    if model.factory is None:
        raise ValueError("a state dict needs its factory")
    network = call_factory(model.factory)
    network.load_state_dict(torch.load(model.path, map_location="cpu", weights_only=True))
    network.eval()
    *_, last = (layer for layer in network.modules() if isinstance(layer, torch.nn.Linear))
    own: list[torch.Tensor] = []
    hook = last.register_forward_hook(lambda _, __, answers: own.append(answers))
    with torch.no_grad():
        answers = torch.cat([network(rows) for rows in torch.from_numpy(photos).split(_AT_ONCE)])
        hook.remove()
        if not own or last.bias is None or not torch.equal(torch.cat(own), answers):
            raise ValueError(f"{model.factory.target} doesn't end in a Linear layer with a bias")
        last.bias -= answers.mean(0)
    torch.save(network.state_dict(), model.path)
    return dataclasses.replace(model, sha256=sha256_of(Path(model.path)))
