"""Generated networks in other formats: each along the best route, and compared with what the network computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from conrepair.converters.routes import find_route
from conrepair.data.binding import bind_inputs
from conrepair.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.evaluate.pairing import fit, pair_outputs
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model, from_json
from conrepair.frameworks.registry import framework
from conrepair.frameworks.runnable import Runnable
from conrepair.generate.generated import INPUTS, MODEL, OUTPUTS
from conrepair.generate.judging import difference
from conrepair.jobs.models import conversion_payload, convert
from conrepair.runtime.errors import ConversionError

__all__ = ["convert_network"]

Arrays = dict[str, np.ndarray[Any, Any]]


def convert_network(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Convert a generated network, and compare what the result computes.

    Args:
        payload: "network" (its folder), "format", "coarsest" (as `difference` wants it).
        folder: Receives the model.

    Returns:
        "route"; "file" (below the folder); "verdict": "same", or "differs" with the fields of `ResultDifference`.

    Raises:
        ConrepairError: if it can't be converted, or the result can't be run.
    """
    network, target = Path(payload["network"]), payload["format"]
    here = Model("onnx", str(network / MODEL), model_sha256(network / MODEL))
    route = find_route("onnx", target, model=here)
    inputs = framework("onnx").describe(here).inputs
    for place, step in enumerate(route.steps):
        own = folder / str(place)
        own.mkdir()
        made = convert(conversion_payload(here, step, step.complete({}), inputs), own)["model"]
        here = from_json(Model, made | {"path": str(own / made["path"])})
    found = _outputs(framework(target).load(here), _arrays(network / INPUTS))
    expected, candidate = _paired(_arrays(network / OUTPUTS), found)
    wrong = difference(expected, candidate, payload["coarsest"])
    verdict = {"verdict": "same"} if wrong is None else {"verdict": "differs", **vars(wrong)}
    return {"route": route.name, "file": Path(here.path).relative_to(folder).as_posix(), **verdict}


def _arrays(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as read:
        return dict(read)


def _outputs(runnable: Runnable, inputs: Arrays) -> Arrays:
    """What a model computes of a network's inputs, by its own names."""
    samples = [TensorSpec(name, array.shape, array.dtype.name) for name, array in inputs.items()]
    specs = {spec.name: spec for spec in runnable.inputs}
    feeds = {}
    for binding in bind_inputs(samples, runnable.inputs):
        array = inputs[binding.sample]
        array = array if binding.permutation is None else array.transpose(binding.permutation)
        feeds[binding.input] = array.astype(numpy_dtype(specs[binding.input].dtype), copy=False)
    return runnable.run(feeds)


def _paired(expected: Arrays, found: Arrays) -> tuple[Arrays, Arrays]:
    """Both sides' outputs by the network's names, in its layout.

    Raises:
        ConversionError: if an output has none that stands for it.
    """
    if expected.keys() == found.keys():
        return expected, found
    pairs, unpaired = pair_outputs(expected, found)
    if unpaired:
        raise ConversionError(unpaired[0])
    fitted = {pair.reference: fit(pair, expected[pair.reference], found[pair.candidate]) for pair in pairs}
    return {name: one for name, (one, _) in fitted.items()}, {name: other for name, (_, other) in fitted.items()}
