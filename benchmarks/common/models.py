"""The models of the benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.common.networks import FEATURES, STEPS, TOKENS, WORDS
from conrepair.data.tensor_spec import TensorSpec
from conrepair.zoo.architectures import select
from conrepair.zoo.catalog import zoo_model

__all__ = ["LARGE", "MIDDLE", "MODELS", "SMALL", "BenchmarkModel"]

SMALL, MIDDLE, LARGE = 0, 1, 2


@dataclass(frozen=True)
class BenchmarkModel:
    """A network that faults are put into.

    Attributes:
        name: For people, and in the names of cases.
        factory: What builds it.
        inputs: That it takes.
        size: `SMALL`, `MIDDLE` or `LARGE`.
        kwargs: Of the factory.
        pretrained: Name in the zoo, whose weights it gets; "" for random ones that keep the variance.
        trained: Whether it's trained on digits.
        normalized: Whether it has BatchNorm, which exporters fold or keep.
        recipe: How photos become its inputs; "" for random inputs.
        samples: How many inputs are compared.
        unseen: How many more verify what the first ones found.
        batch_size: At once.
    """

    name: str
    factory: str
    inputs: tuple[TensorSpec, ...]
    size: int = SMALL
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    pretrained: str = ""
    trained: bool = False
    normalized: bool = False
    recipe: str = ""
    samples: int = 8
    unseen: int = 64
    batch_size: int = 4


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
    )
}
