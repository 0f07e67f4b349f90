"""Networks that a seed draws: those of one seed have other sizes, parts, weights and inputs than those of another."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common.benchmark_model import BenchmarkModel
from conrepair.ground.data.tensor_spec import TensorSpec

__all__ = ["drawn"]

_ACTIVATIONS = ("ReLU", "ReLU6", "SiLU", "Hardswish", "LeakyReLU", "ELU", "Sigmoid", "Tanh", "Softplus", "GELU")
_STEADY = _ACTIVATIONS[:6]  # of convolutions


def drawn(seed: int) -> tuple[BenchmarkModel, ...]:
    """One network of each family."""
    generator = np.random.default_rng(seed)
    return (
        _pictures(generator, seed),
        _text(generator, seed),
        _series(generator, seed),
        _pair(generator, seed),
        _vector(generator, seed),
    )


def _model(name: str, seed: int, kwargs: dict[str, Any], *inputs: TensorSpec, **more: Any) -> BenchmarkModel:
    factory = f"benchmarks.common.drawn_networks:{name}"
    return BenchmarkModel(f"{name}-{seed}", factory, inputs, kwargs=kwargs, seed=seed, **more)


def _some(generator: np.random.Generator, choices: tuple[str, ...], count: int) -> list[str]:
    return [str(choices[index]) for index in generator.permutation(len(choices))[:count]]


def _between(generator: np.random.Generator, low: int, high: int) -> int:
    return int(generator.integers(low, high + 1))


def _pictures(generator: np.random.Generator, seed: int) -> BenchmarkModel:
    count = _between(generator, 2, 4)
    sizes = {
        "channels": [4 * _between(generator, 3, 8) for _ in range(count)],
        "kernel": int(generator.choice([3, 5])),
        "activations": _some(generator, _STEADY, count),
        "pooling": str(generator.choice(["max", "mean"])),
        "residual": bool(generator.integers(2)),
        "dense": 8 * _between(generator, 3, 8),
    }
    picture = TensorSpec("", ("batch", 1, 8, 8), "float32")
    return _model("pictures", seed, sizes, picture, trained=True, normalized=True)


def _text(generator: np.random.Generator, seed: int) -> BenchmarkModel:
    heads = _between(generator, 2, 5)
    sizes = {
        "words": _between(generator, 30, 90),
        "tokens": _between(generator, 7, 19),
        "width": 8 * heads,
        "heads": heads,
        "inner": 8 * _between(generator, 5, 12),
        "layers": _between(generator, 2, 4),
        "activation": str(generator.choice(["relu", "gelu"])),
        "first": bool(generator.integers(2)),
    }
    tokens = TensorSpec("", ("batch", sizes["tokens"]), "int64", high=sizes["words"])
    return _model("text", seed, sizes, tokens)


def _series(generator: np.random.Generator, seed: int) -> BenchmarkModel:
    count = _between(generator, 2, 3)
    sizes = {
        "features": _between(generator, 3, 11),
        "sorts": [str(generator.choice(["LSTM", "GRU"])) for _ in range(count)],
        "sizes": [_between(generator, 7, 23) for _ in range(count)],
        "both": bool(generator.integers(2)),
    }
    series = TensorSpec("", ("batch", _between(generator, 5, 13), sizes["features"]), "float32")
    return _model("series", seed, sizes, series)


def _pair(generator: np.random.Generator, seed: int) -> BenchmarkModel:
    sizes = {
        "left": _between(generator, 5, 14),
        "right": _between(generator, 5, 14),
        "width": _between(generator, 9, 30),
        "joined": str(generator.choice(["cat", "mul", "sub"])),
        "activations": _some(generator, _ACTIVATIONS, 2),
    }
    inputs = (TensorSpec("", ("batch", sizes[name]), "float32") for name in ("left", "right"))
    return _model("pair", seed, sizes, *inputs)


def _vector(generator: np.random.Generator, seed: int) -> BenchmarkModel:
    count = _between(generator, 3, 6)
    sizes = {
        "size": _between(generator, 11, 33),
        "widths": [_between(generator, 20, 80) for _ in range(count)],
        "activations": _some(generator, _ACTIVATIONS, count),
        "norm": _between(generator, 0, count - 1),
    }
    return _model("vector", seed, sizes, TensorSpec("", ("batch", sizes["size"]), "float32"))
