"""A network with what's known of it: its file, what it computes exactly, and what an arithmetic does to that."""

from __future__ import annotations

import copy
import functools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import nn

from benchmarks.arithmetics.networks import Network, exported
from benchmarks.arithmetics.rounding import ARITHMETICS
from benchmarks.arithmetics.simulated import one_by_one, simulated
from benchmarks.common.plain_graph import PlainGraph

__all__ = ["Prepared", "exactly", "part_exactly", "relative"]

Array = npt.NDArray[Any]

_SAME = 1e-4
"""Up to which two tensors of float32 are one, computed by two libraries."""


class Prepared:
    """A right network.

    Attributes:
        network: With its module and samples.
        path: Of its ONNX file.
        exact: Its outputs in float64.
    """

    def __init__(self, network: Network, path: Path) -> None:
        """Export it.

        Args:
            network: Trained.
            path: Of the file that's written.
        """
        self.network, self.path = network, path
        export(network.module, network, path)
        self.model = onnx.load(path)
        self.feeds = {"given": network.feed}
        self.exact = exactly(network.module, network.feed)

    @functools.cached_property
    def names(self) -> dict[str, str]:
        """Tensors of the file by the module whose result each is, told by their numbers."""
        made: dict[str, Array] = {}

        def hook(name: str) -> Any:
            def keep(_module: nn.Module, _given: Any, result: Any) -> None:
                made[name] = (result[0] if isinstance(result, tuple) else result).numpy()

            return keep

        handles = [
            part.register_forward_hook(hook(name))
            for name, part in self.network.module.named_modules()
            if name and not list(part.children())
        ]
        with torch.no_grad():
            self.network.module(torch.from_numpy(self.network.feed))
        for handle in handles:
            handle.remove()
        found = {}
        for name, array in made.items():
            for tensor, other in self._tensors.items():
                if other.shape == array.shape and tensor != "made" and relative(array, other) < _SAME:
                    found[name] = tensor
        return found

    @functools.cached_property
    def _tensors(self) -> dict[str, Array]:
        return simulated(self.model, self.feeds, ARITHMETICS["float32"])

    @functools.cache  # noqa: B019 (it lives as long as the benchmark)
    def cost(self, arithmetic: str) -> float:
        """What our simulation of an arithmetic changes outputs by."""
        return relative(self.exact, simulated(self.model, self.feeds, ARITHMETICS[arithmetic])["made"])

    def cost_at(self, layers: list[str], arithmetic: str) -> float:
        """What it changes the results of some layers by, each of which is fed what's right."""
        return max(one_by_one(self.model, self.feeds, self._tensors, ARITHMETICS[arithmetic], layers), default=0.0)

    def layers_of(self, faulty: onnx.ModelProto, place: str) -> list[str]:
        """Layers of a part that the file with a fault hasn't, or if it has all, has otherwise.

        Constants that are equal are shared behind nodes `Identity`: other parts may read them by another name.

        Args:
            faulty: The file.
            place: Name of the part in the module.
        """
        right, wrong = PlainGraph.of(self.model), PlainGraph.of(faulty)
        changed = [name for name in right.differing(wrong) if right.nodes[name].op_type != "Identity"]
        inside = [name for name in changed if f"{_module_of(name)}.".startswith(f"{place}.")]
        differing = inside or changed  # of a norm that's folded into the layer in front of it
        lost = [name for name in differing if name not in wrong.nodes]
        return sorted(lost or differing)


def _module_of(node: str) -> str:
    """The module that the exporter named a node by: `/body/body.0/Conv` is of `body.0`."""
    found = ""
    for part in node.split("/")[1:-1]:
        parent, _, last = part.rpartition(".")
        inside = parent and f".{found}".endswith(f".{parent}")
        found += ("." if found else "") + (last if inside else part)
    return found


def export(module: nn.Module, network: Network, path: Path) -> None:
    """Write a module as the network is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported(module, network.feed, path, folded=network.folded)


def exactly(module: nn.Module, feed: Array) -> Array:
    """Outputs in float64."""
    given = torch.from_numpy(feed)
    with torch.no_grad():
        made: Array = copy.deepcopy(module).double()(given.double() if given.is_floating_point() else given).numpy()
    return made


def part_exactly(right: nn.Module, faulty: nn.Module, place: str, feed: Array) -> float:
    """What a fault changes the result of its part by, in float64, fed what's right."""
    one, two = copy.deepcopy(right).double(), copy.deepcopy(faulty).double().get_submodule(place)
    effects: list[float] = []

    def compare(_module: nn.Module, given: tuple[Any, ...], made: Any) -> None:
        found = two(*given)
        results = [item[0] if isinstance(item, tuple) else item for item in (made, found)]
        effects.append(relative(*(item.numpy() for item in results)))

    one.get_submodule(place).register_forward_hook(compare)
    given = torch.from_numpy(feed)
    with torch.no_grad():
        one(given.double() if given.is_floating_point() else given)
    return max(effects, default=0.0)


def relative(expected: Array, given: Array) -> float:
    """Relative L2; infinite where something isn't finite."""
    size = float(np.linalg.norm(expected.astype(np.float64)))
    off = float(np.linalg.norm(given.astype(np.float64) - expected.astype(np.float64)))
    return off / size if size and np.isfinite(off) else 0.0 if not off else float("inf")
