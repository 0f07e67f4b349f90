"""The models that are converted, each made and converted on once.

MobileNetV2 is pretrained. ResNet101 and InceptionV3 have random weights. Such a network gives nearly the same answers
to every photo: what its features have in common over all photos outweighs what they tell apart. So the mean answer on
photos is taken out of its last layer's bias. Its classes still mean nothing, but they differ from photo to photo, and
change with what a network is fed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.making import build, photo_inputs, side_of
from benchmarks.common.models import MODELS
from benchmarks.repair.older.cases import RIGHT
from conrepair.converters.routes import find_route
from conrepair.frameworks.factories import call_factory
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.runtime.files import sha256_of
from conrepair.runtime.workers import Job, Success, Workers

__all__ = ["Made", "NotMadeError", "make", "with_answers"]

_FRAMEWORKS = {"torch": "torch", "keras": "keras", "tf": "tensorflow", "tflite": "tflite"}
_CHAINS = {"torch": (), "keras": ("keras",), "tf": ("keras", "tf"), "tflite": ("keras", "tflite")}
"""How a model of each format is made of PyTorch's."""

_TIMEOUT = 1200.0
_PHOTOS, _AT_ONCE = 24, 8


class NotMadeError(Exception):
    """A model couldn't be made or converted; says by what."""


class Made:
    """Makes what cases need, and knows where it is.

    Args:
        folder: For models.
        workers: Where they're made.
    """

    def __init__(self, folder: Path, workers: Workers) -> None:
        self._folder, self._workers = folder, workers
        self._known: dict[tuple[str, ...], dict[str, Any] | str] = {}

    def source(self, model: str, form: str) -> dict[str, Any]:
        """A model in a format."""
        return self._chain(model, _CHAINS[form])

    def target(self, model: str, source: str, target: str) -> dict[str, Any]:
        """What that source is converted to, by the route that the product takes."""
        return self._chain(model, (*_CHAINS[source], target))

    def _chain(self, model: str, formats: Sequence[str]) -> dict[str, Any]:
        names, here = [], "torch"
        for form in formats:
            names += [step.name for step in find_route(_FRAMEWORKS[here], _FRAMEWORKS[form]).steps]
            here = form
        return self._side(model, *names)

    def _side(self, model: str, *converters: str) -> dict[str, Any]:
        key = (model, *converters)
        if key not in self._known:
            self._known[key] = self._made(key)
        made = self._known[key]
        if isinstance(made, str):
            raise NotMadeError(made)
        return made

    def _made(self, key: tuple[str, ...]) -> dict[str, Any] | str:
        *before, last = key
        if before:
            payload = {"side": self._side(*before), "converter": last, "options": {}}
            function = "benchmarks.common.making:convert"
        else:
            payload, function = {"model": last}, "benchmarks.repair.older.making:make"
        folder = self._folder / str(len(self._known))
        folder.mkdir(parents=True)
        outcome = self._workers.call(Job(function, payload, folder, timeout=_TIMEOUT))
        return outcome.value["side"] if isinstance(outcome, Success) else f"{last}: {outcome}"


def make(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
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
