"""Networks by name, with what they're fed."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from benchmarks.common.making import FOLDED, made
from benchmarks.common.models import MODELS
from benchmarks.common.plain_graph import Array, PlainGraph
from benchmarks.judges.cases import DIGITS, GENERATED
from benchmarks.judges.conditioned import CONDITIONED
from benchmarks.judges.deep import DEEP
from benchmarks.judges.network import COUNT, Network
from benchmarks.judges.shallow import SHALLOW
from benchmarks.trace.generated import generated
from conrepair.verdicts.truth.bound import Analysis

__all__ = ["source"]

_TRIES = 60
_WRITTEN = {**SHALLOW, **CONDITIONED, **DEEP}


@functools.lru_cache(maxsize=32)
def source(name: str, seed: int) -> Network:
    """A network.

    Args:
        name: One of those written here, `GENERATED` with a number behind it, or `DIGITS`.
        seed: Of its weights and inputs.

    Raises:
        ValueError: if no network came of a draw.
    """
    if name in _WRITTEN:
        return _WRITTEN[name](np.random.default_rng([seed, *name.encode()]))
    with tempfile.TemporaryDirectory() as folder:
        return _digits(Path(folder), seed) if name == DIGITS else _generated(name, Path(folder), seed)


def _digits(folder: Path, seed: int) -> Network:
    """The network that's trained on pictures of digits."""
    made(MODELS["digits-cnn"], folder)
    with np.load(folder / "data.npz") as file:
        feeds = {name: file[name] for name in file.files}
    chosen = np.random.default_rng(seed).permutation(len(next(iter(feeds.values()))))[:COUNT]
    proto = onnx.load(folder / FOLDED / "model.onnx")
    return Network(PlainGraph.of(proto), {name: array[chosen] for name, array in feeds.items()})


def _generated(name: str, folder: Path, seed: int) -> Network:
    """One that `conrepair_lab.generate` draws, of inputs and outputs with one number of samples."""
    for place in range(_TRIES):
        found = generated(f"{GENERATED}/{seed}/{name}/{place}", folder)
        if found is None:
            continue
        outputs = [item.type.tensor_type.shape.dim for item in found.proto.graph.output]
        counts = {array.shape[0] if array.ndim else 0 for array in found.feeds.values()}
        counts |= {sizes[0].dim_value if len(sizes) else 0 for sizes in outputs}
        if len(counts) == 1 and 0 not in counts and _known(found.proto, found.feeds):
            return Network(PlainGraph.of(found.proto), dict(found.feeds))
    raise ValueError(f"no network came of {_TRIES} draws")


def _known(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> bool:
    """Whether ONNX's reference computes it in float64."""
    try:
        Analysis(model).truth(feeds)
    except Exception:  # noqa: BLE001 (it raises a dozen types)
        return False
    return True
