"""Whether a kernel whose results are disturbed as it runs is told from those that only carry the error.

    python -m benchmarks.trace.plants [--seeds development|reporting] [--case NAME ...] [--list] [--first N]
                                      [--lanes N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.trace.plants --tables FILE

Generated networks are built without optimizations (O0), and with: O3, whose kernels give the same bits, and with fast
math on this processor, whose kernels don't. TVM's virtual machine calls back behind each kernel: what one wrote is
changed there by some units in the last place, in one element or in many, and `replay` is asked which kernels made an
error. A plant is found if its kernel is among these (changes "generated" and "differs"); all others that are named
count against precision, but those that are named without a plant, too, are counted beside.
"""

from __future__ import annotations

import functools
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.bounds import at_least
from benchmarks.common.cases import Case
from benchmarks.common.generated import case_of
from benchmarks.common.rows import CaseRow
from benchmarks.trace.asking import ask
from benchmarks.trace.generated import Generated, generated
from conrepair.formats.networks.tvm import TvmNetwork
from conrepair.ground.graph.layer_graph import Array
from conrepair.verdicts.truth.bound import Analysis
from conrepair_lab.systems.registry import SYSTEMS
from conrepair_lab.tracing.exact_side import pieces_of
from conrepair_lab.tracing.propagation import replay

__all__ = ["INTRODUCED", "TRIES", "UNITS", "Row", "disturb", "plan", "report", "run", "seen"]

UNITS = {"O3": (1, 1, 2, 4, 16, 256), "fast": (16, 32, 64, 256, 4096)}
_NETWORKS, _PLANTS = 60, 10  # for each of two seeds; of a network, for each pair
TRIES = 10
_TIMEOUT = 600.0
INTRODUCED = {"generated", "differs"}
_TVM = SYSTEMS["tvm"]


def plan(seeds: Sequence[int]) -> list[Case]:
    """All cases: a network each."""
    return [
        Case("plants", "generated", "O0", "O3, fast", (f"network {number}",), 1, seed)
        for seed in seeds
        for number in range(_NETWORKS)
    ]


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry a case out; a job of a worker.

    Args:
        payload: "case".
        folder: For files.

    Returns:
        "status", "words", "plants": of each its "pair", "units", "value", "elements", the values that are "named" and
        those that are "without" it.
    """
    case = case_of(payload)
    words = ""
    for place in range(TRIES):
        with tempfile.TemporaryDirectory(dir=folder) as made:
            found = generated(f"{case.seed}/{case.faults[0]}/{place}", Path(made))
            try:
                plants = [] if found is None else _planted(found, case, Path(made))
            # ONNX's reference, TVM's importer and its passes raise what they like for what they don't know.
            except Exception as error:  # noqa: BLE001
                plants, words = [], f"{type(error).__name__}: {error}"
            if plants:
                return {"status": "measured", "words": "", "plants": plants}
    return {"status": "no network", "words": words}


def _planted(network: Generated, case: Case, folder: Path) -> list[dict[str, Any]]:
    generator = np.random.default_rng(zlib.crc32(case.name.encode()))
    exact = Analysis(network.proto).truth(network.feeds)
    outputs = {name for node in network.proto.graph.node for name in node.output if name}
    plain = _observed(network, "O0", folder)
    found = []
    for pair, units in UNITS.items():
        side = _observed(network, pair, folder)
        feeds = {side.input_names[key]: array for key, array in network.feeds.items()}
        cuts = [key for key, item in side.graph.tensors.items() if item.observable and key in outputs]
        # what's given to the pieces depends on no plant
        pieces = functools.cache(lambda cuts=cuts: pieces_of(network.proto, cuts))
        known: dict[str, Any] = {}

        def once(given: Mapping[str, Array], pieces: Any = pieces, known: dict[str, Any] = known) -> Any:
            if not known:
                known[""] = pieces()(given)
            return known[""]

        def named(once: Any = once, side: TvmNetwork = side, feeds: Any = feeds) -> list[str]:
            found = replay(side, feeds, exact, once, plain).errors
            # a kernel's result may be several tensors of the network (Identity)
            return sorted({side._values[item.tensor] for item in found if item.change in INTRODUCED})

        without = named()
        values = seen(side, network, exact)
        places = {name: np.flatnonzero(np.isfinite(array) & (array != 0)) for name, array in values.items()}
        kept = [name for name in values if places[name].size and values[name].dtype == np.float32]
        for _ in range(_PLANTS if kept else 0):
            tensor, many = kept[generator.integers(len(kept))], generator.random() < 0.5
            chosen = places[tensor] if many else generator.choice(places[tensor], 1)
            plant = int(generator.choice(units))
            with disturb(side, tensor, chosen, plant):
                told = named()
            found.append(
                {
                    "pair": pair,
                    "units": plant,
                    "value": side._values[tensor],
                    "elements": len(chosen),
                    "named": told,
                    "without": without,
                }
            )
    return found


def seen(side: TvmNetwork, network: Generated, exact: Mapping[str, Array]) -> Mapping[str, Array]:
    """What kernels of a build write that is a tensor of the network with exact values."""
    outputs = {name for node in network.proto.graph.node for name in node.output if name}
    cuts = [key for key, item in side.graph.tensors.items() if item.observable and key in outputs]
    feeds = {side.input_names[key]: array for key, array in network.feeds.items()}
    written = [name for name in cuts if name in exact and side.kernel(name) is not None]
    return side.segment(tuple(feeds), written).run(feeds) if written else {}


def _observed(network: Generated, setting: str, folder: Path) -> TvmNetwork:
    found = _TVM.observed(network.model, _TVM.settings[setting], folder)
    assert isinstance(found, TvmNetwork)
    return found


class disturb:  # noqa: N801
    """A context in which a kernel's results are off."""

    def __init__(self, network: TvmNetwork, tensor: str, elements: Array, units: int) -> None:
        """Choose what.

        Args:
            network: A build.
            tensor: That the kernel writes.
            elements: Of it, by their places in a row.
            units: In the last place, by which they're larger.
        """
        calls = network._calls.calls
        self._call, self._value = next(
            (place, call.writes.index(value))
            for place, call in enumerate(calls)
            for value in [network._values[tensor]]
            if value in call.writes
        )
        self._functions, self._reads = {item.function for item in calls}, len(calls[self._call].reads)
        self._runnable, self._observe = network.runnable, network.runnable.observe
        self._elements, self._units = elements, units

    def __enter__(self) -> None:
        """Step between the machine and whoever looks at it."""
        self._runnable.observe = self._observed  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        """Step aside."""
        self._runnable.observe = self._observe  # type: ignore[method-assign]

    def _observed(self, instrument: Callable[..., Any]) -> None:
        began = 0

        def between(function: Any, symbol: str, before: bool, result: Any, *arguments: Any) -> Any:
            nonlocal began
            if symbol in self._functions:
                began += before
                if not before and began == self._call + 1:
                    self._change(arguments[self._reads + self._value])
            return instrument(function, symbol, before, result, *arguments)

        self._observe(between)

    def _change(self, written: Any) -> None:
        array = written.numpy().copy()
        bits = array.reshape(-1).view(np.int32)
        real = self._elements[array.reshape(-1)[self._elements] != 0]
        bits[real] += self._units
        written.copyfrom(array)


@dataclass(frozen=True)
class Row(CaseRow):
    """A network of this benchmark."""

    @property
    def score(self) -> None:
        """Nothing but what's in the result."""


def report(rows: Sequence[Row]) -> str:
    """A table of rows."""
    plants = [plant for row in rows for plant in row.result.get("plants", ())]
    lines = [
        "| pair | units | plants | found | at least | precision | without those named without a plant |",
        "|---|---|---|---|---|---|---|",
    ]
    for pair, units in UNITS.items():
        own = [plant for plant in plants if plant["pair"] == pair]
        lines += [_line(f"O0, {pair}", "all", own)] if own else []
        for unit in sorted(set(units)):
            some = [plant for plant in own if plant["units"] == unit]
            lines += [_line("", str(unit), some)] if some else []
    lines += [_line("all", "", plants)] if plants else []
    without = sum(row.status != "measured" for row in rows)
    return "\n".join([*lines, "", f"{len(rows) - without} networks, {without} without a plant"])


def _line(pair: str, units: str, plants: Sequence[Mapping[str, Any]]) -> str:
    found = sum(plant["value"] in plant["named"] for plant in plants)
    named = sum(len(plant["named"]) for plant in plants)
    new = sum(len({*plant["named"]} - {*plant["without"]} - {plant["value"]}) for plant in plants)
    share = found / len(plants)
    strict, fresh = (found / max(count, 1) for count in (named, found + new))
    return (
        f"| {pair} | {units} | {len(plants)} | {share:.1%} | {at_least(share, len(plants))} | {strict:.1%} "
        f"| {fresh:.1%} |"
    )


def main() -> int:
    """Run and print."""
    trial = ("benchmarks.trace.plants:run", _TIMEOUT, "kernels")
    ask(__doc__, Row, plan, trial, report, lambda row: f"{row.status}, {len(row.result.get('plants', ()))} plants")
    return 0


if __name__ == "__main__":
    sys.exit(main())
