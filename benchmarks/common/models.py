"""The models of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.common.benchmark_model import LARGE, MIDDLE, SMALL, BenchmarkModel
from benchmarks.common.drawn import drawn
from benchmarks.common.networks import FEATURES, STEPS, TOKENS, WORDS
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.zoo.architectures import select
from conrepair.ground.zoo.catalog import zoo_model

__all__ = [
    "DEVELOPMENT_SEEDS",
    "LARGE",
    "MIDDLE",
    "MODELS",
    "REPORTING_SEEDS",
    "SMALL",
    "BenchmarkModel",
    "models_of",
]

DEVELOPMENT_SEEDS = (11, 12)
"""To look at while localization is worked on."""

REPORTING_SEEDS = (90_001, 90_002)
"""For reported figures only. Nobody looks at single cases of these to fix something."""

_REPORTED = ("efficientnet-lite0", "inception-v3")


def _own(name: str, *inputs: TensorSpec, trained: bool = False) -> BenchmarkModel:
    factory = f"benchmarks.common.networks:{name}"
    return BenchmarkModel(name.replace("_", "-"), factory, inputs, trained=trained, normalized=trained)


def _image(size: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec("", ("batch", 3, size, size), "float32"),)


def _pretrained(name: str, size: int = 224) -> BenchmarkModel:
    entry, _ = zoo_model(name)
    assert entry.factory is not None
    return BenchmarkModel(
        name.replace("_", "-"),
        entry.factory,
        _image(size),
        MIDDLE,
        pretrained=name,
        normalized=True,
        recipe=entry.recipe,
        samples=4,
        unseen=16,
        batch_size=2,
    )


def _random(name: str, size: int) -> BenchmarkModel:
    (item,) = select("torchvision", [name])
    return BenchmarkModel(
        name.replace("_", "-"),
        item.factory,
        _image(size),
        LARGE,
        item.arguments(size),
        normalized=True,
        samples=2,
        unseen=4,
        batch_size=2,
    )


MODELS: dict[str, BenchmarkModel] = {
    model.name: model
    for model in (
        _own("digits_cnn", TensorSpec("", ("batch", 1, 8, 8), "float32"), trained=True),
        _own("encoder", TensorSpec("", ("batch", TOKENS), "int64", high=WORDS)),
        _own("recurrent", TensorSpec("", ("batch", STEPS, FEATURES), "float32")),
        _own("two_inputs", *(TensorSpec("", ("batch", 8), "float32") for _ in range(2))),
        _own("perceptron", TensorSpec("", ("batch", 20), "float32")),
        _pretrained("mobilenet_v2"),
        _pretrained("efficientnet_lite0"),
        _random("resnet101", 224),
        _random("inception_v3", 299),
        *(model for seed in REPORTING_SEEDS for model in drawn(seed)),
    )
}


def models_of(seeds: Sequence[int]) -> list[str]:
    """Names of the networks that faults of some seeds are put into: development and reporting share none."""
    reporting = bool(set(seeds) & set(REPORTING_SEEDS))
    return [model.name for model in MODELS.values() if reporting == (model.seed > 0 or model.name in _REPORTED)]
