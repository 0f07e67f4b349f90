"""In a worker: make a model in its own framework and as ONNX, and inputs for it."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import drawn_networks, networks
from benchmarks.common.digits import read_digits
from benchmarks.common.models import MODELS, BenchmarkModel
from conrepair.application.jobs.conversion import convert as run_converter
from conrepair.application.jobs.values import ConversionStep
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.converters.torch_onnx import export_names, symbolic_axes
from conrepair.formats.models.builders import build_from_factory, calibration_inputs
from conrepair.formats.models.factories import call_factory
from conrepair.formats.models.model import Factory, Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.pictures.decode import decode_picture
from conrepair.ground.data.pictures.named_recipes import named_recipe
from conrepair.ground.data.pictures.photos import read_photo_folder
from conrepair.ground.data.pictures.recipe import apply_numeric, apply_spatial
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import sha256_of, whole_output
from conrepair.ground.runtime.typed import typed
from conrepair.ground.zoo.catalog import zoo_model, zoo_photos
from conrepair.ground.zoo.packages import cache_folder

__all__ = ["FOLDED", "KEPT", "OWN", "build", "convert", "made", "make", "photo_inputs", "side_of", "unfolded"]

OWN, FOLDED, KEPT = "torch", "onnx", "onnx-kept"
_SEED = 20261120  # of weights
_INPUT_SEED = 7
_OPSET = 17


def make(folder: Path, **payload: Any) -> dict[str, Any]:
    """Build a model of the benchmark.

    Args:
        payload: "model" (its name); "samples", if others than its own are wanted.
        folder: Receives all files.

    Returns:
        "sides" (for each way to write it: "model" and "inputs") and "data" (the inputs' file).
    """
    wanted = MODELS[payload["model"]]
    return made(dataclasses.replace(wanted, samples=payload.get("samples", wanted.samples)), folder)


def made(wanted: BenchmarkModel, folder: Path) -> dict[str, Any]:
    """The same of a model that needn't be in the list."""
    built = folder / OWN
    built.mkdir()
    own = build(wanted, built)
    own = dataclasses.replace(own, inputs=framework(own.framework).describe(own).inputs)
    models = {OWN: own, FOLDED: _folded(own, folder / FOLDED)}
    if wanted.normalized:
        models[KEPT] = unfolded(own, folder / KEPT)
    sides = {name: side_of(model) for name, model in models.items()}
    names = [spec["name"] for spec in sides[FOLDED]["inputs"]]
    data = folder / "data.npz"
    np.savez(data, **dict(zip(names, _inputs(wanted), strict=True)))
    return {"sides": sides, "data": str(data)}


def convert(folder: Path, **payload: Any) -> dict[str, Any]:
    """One conversion.

    Args:
        payload: "side" (of the model that's converted), "converter", "options".
        folder: Receives the target.

    Returns:
        "side" of the target.
    """
    step = converter(payload["converter"])
    model = typed(Model, payload["side"]["model"])
    inputs = tuple(typed(TensorSpec, spec) for spec in payload["side"]["inputs"])
    value = run_converter(folder, model, ConversionStep.of(step, step.complete(payload["options"])), inputs)
    made = dataclasses.replace(value.model, path=str(folder / value.model.path), provenance=None)
    return {"side": {"model": asdict(made), "inputs": [asdict(spec) for spec in value.description.inputs]}}


def build(wanted: BenchmarkModel, folder: Path) -> Model:
    """The network with its weights, as what PyTorch loads."""
    weights = None
    if wanted.trained:
        weights = _trained(wanted)
    elif wanted.pretrained:
        weights = zoo_model(wanted.pretrained)[1]
    return build_from_factory(
        target=wanted.factory,
        kwargs=wanted.kwargs,
        weights=None if weights is None else str(weights),
        inputs=wanted.inputs,
        initialize="as-built" if weights else "variance-preserving",
        seed=wanted.seed or _SEED,
        folder=folder,
    )


def _trained(wanted: BenchmarkModel) -> Path:
    """The weights of a network of digits, trained once for each version of its code and of PyTorch."""
    import torch

    seed = wanted.seed or _SEED
    code = Path(networks.__file__).read_bytes() + Path(drawn_networks.__file__).read_bytes()
    about = f"{torch.__version__}{wanted.kwargs}".encode()
    path = cache_folder() / f"{wanted.name}-{seed}-{hashlib.sha256(code + about).hexdigest()[:16]}.pt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(seed)
        network = call_factory(Factory(wanted.factory, wanted.kwargs))
        with whole_output(path) as temporary:
            networks.train_on_digits(network, temporary)
    return path


def _folded(model: Model, folder: Path) -> Model:
    """As the older exporter writes it by default: BatchNorm folded into convolutions."""
    step = converter("torch-onnx-script")
    folder.mkdir()
    path = folder / step.convert(model, folder, step.complete({"opset": _OPSET}))
    return Model("onnx", str(path), sha256_of(path))


def unfolded(model: Model, folder: Path) -> Model:
    """With BatchNormalization as nodes of their own, which that exporter only keeps for training."""
    import torch

    from conrepair.formats.torch.load.framework import TorchRunnable

    folder.mkdir()
    path = folder / "model.onnx"
    runnable = TorchRunnable(model)
    named = export_names(runnable)
    names = [*named["input_names"], *named["output_names"]]
    specs = [*runnable.inputs, *runnable.outputs]
    torch.onnx.export(
        runnable.module,
        runnable.examples,
        str(path),
        dynamo=False,
        opset_version=_OPSET,
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        dynamic_axes={name: axes for name, spec in zip(names, specs, strict=True) if (axes := symbolic_axes(spec))},
        **named,
    )
    return Model("onnx", str(path), sha256_of(path))


def side_of(model: Model) -> dict[str, Any]:
    """A model and its inputs as plain values, which `convert` takes."""
    description = framework(model.framework).describe(model)
    return {"model": asdict(model), "inputs": [asdict(spec) for spec in description.inputs]}


def _inputs(wanted: BenchmarkModel) -> list[np.ndarray]:
    if wanted.trained:
        pictures = read_digits()[0][-networks.HELD_OUT :]
        order = np.random.default_rng(wanted.seed).permutation(len(pictures)) if wanted.seed else slice(None)
        return [pictures[order][-wanted.samples :]]
    if wanted.recipe:
        return [photo_inputs(wanted)]
    # Other than those that random networks' statistics were set on.
    first = _INPUT_SEED + wanted.seed
    return [
        calibration_inputs(dataclasses.replace(spec, shape=(wanted.samples, *spec.shape[1:])), first + place)
        for place, spec in enumerate(wanted.inputs)
    ]


def photo_inputs(wanted: BenchmarkModel) -> np.ndarray:
    """As many as are wanted; where there are fewer, the first ones follow once more, mirrored."""
    folders = [folder for _, folder in zoo_photos("photos")]
    paths = [photo.path for folder in folders for photo in read_photo_folder(folder, labels="none").photos]
    if wanted.samples > 2 * len(paths):
        raise ValueError(f"{wanted.samples} photos are wanted; there are {len(paths)}, and their mirror images")
    _, _, height, width = wanted.inputs[0].shape
    recipe = named_recipe(wanted.recipe).for_size(int(height), int(width))
    pictures = np.stack([apply_spatial(recipe.spatial, decode_picture(path)) for path in paths[: wanted.samples]])
    mirrored = pictures[: wanted.samples - len(pictures), :, ::-1]
    return apply_numeric(recipe, np.concatenate([pictures, mirrored]), "NCHW")
