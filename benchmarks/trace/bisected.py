"""How often bisection over float64, as PLiner does it, and replay name the operator at fault, and by how many builds.

    python -m benchmarks.trace.bisected [--seeds development|reporting] [--case NAME ...] [--list] [--first N]
                                        [--lanes N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.trace.bisected --tables FILE

The networks, pairs and sorts of disturbance are those of `benchmarks.trace.plants`, one of each pair and network.
An operator in float64 has no such kernel any more, so the disturbance is gone with it. Bisection sees outputs alone:
where they stay within the bound of rounding it has nothing to go by. Its builds have a kernel for each operator;
replay takes none besides the two that are compared.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.bounds import at_least
from benchmarks.common.cases import Case
from benchmarks.common.generated import case_of
from benchmarks.trace.asking import ask
from benchmarks.trace.generated import Generated, generated
from benchmarks.trace.plants import INTRODUCED, TRIES, UNITS, Row, disturb, plan, seen
from conrepair.formats.networks.tvm import TvmNetwork
from conrepair.ground.forms.all_forms import float64_operators
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.bisection import fewest_that_heal
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.verdicts.truth.bound import ACCURACY, Analysis
from conrepair.verdicts.truth.judging import judge
from conrepair_lab.systems.registry import SYSTEMS
from conrepair_lab.tracing.exact_side import pieces_of
from conrepair_lab.tracing.propagation import replay

__all__ = ["Row", "report", "run"]

_TIMEOUT = 1800.0
_MOST = 200
_TVM = SYSTEMS["tvm"]


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry a case out; a job of a worker.

    Args:
        payload: "case".
        folder: For files.

    Returns:
        "status", "words", "plants": of each its "pair", "operator" and "kernel", which kernels replay "named",
        whether it "shows" at outputs, what bisection found ("fewest") by how many "builds".
    """
    case, words = case_of(payload), ""
    for place in range(TRIES):
        with tempfile.TemporaryDirectory(dir=folder) as made:
            found = generated(f"{case.seed}/{case.faults[0]}/{place}", Path(made))
            try:
                trials = [] if found is None else [_Trial(found, pair, Path(made)) for pair in UNITS]
                plants = [trial.told(case) for trial in trials if trial.kept]
            # ONNX's reference, TVM's importer and its passes raise what they like for what they don't know.
            except Exception as error:  # noqa: BLE001
                plants, words = [], f"{type(error).__name__}: {error}"
            if plants:
                return {"status": "measured", "words": "", "plants": plants}
    return {"status": "no network", "words": words}


class _Trial:
    """A network, built by one setting."""

    def __init__(self, network: Generated, pair: str, folder: Path) -> None:
        self._network, self._pair, self._folder = network, pair, folder
        self._exact = Analysis(network.proto).at(network.feeds, ACCURACY)
        self._side, self._plain = self._built(pair), self._built(_TVM.plain)
        values = seen(self._side, network, self._exact.truth)
        self._places = {name: np.flatnonzero(np.isfinite(array) & (array != 0)) for name, array in values.items()}
        self.kept = [name for name in values if self._places[name].size and values[name].dtype == np.float32]

    def told(self, case: Case) -> dict[str, Any]:
        """One disturbance, and what both ways say of it."""
        random = np.random.default_rng(zlib.crc32(f"{case.name} {self._pair}".encode()))
        tensor = self.kept[random.integers(len(self.kept))]
        some = self._places[tensor]
        chosen = some if random.random() < 0.5 else random.choice(some, 1)
        units = int(random.choice(UNITS[self._pair]))
        operator = next(item.name or tensor for item in self._network.proto.graph.node if tensor in item.output)
        outputs = list(self._side.output_names.values())

        def wrong(side: TvmNetwork, disturbed: bool) -> bool:
            feeds = {side.input_names[key]: array for key, array in self._network.feeds.items()}
            run = side.segment(tuple(feeds), outputs).run
            if not disturbed:
                return self._beyond(run(feeds))
            with disturb(side, tensor, chosen, units):
                return self._beyond(run(feeds))

        def heals(names: Sequence[str]) -> bool:
            try:
                side = self._built(self._pair, fusion_depth=1, float64=names)
                return not wrong(side, operator not in names)
            except (ConrepairError, ValueError):  # what can't be built, or whose kernel is gone, says nothing
                return False

        shows = wrong(self._side, True) and not wrong(self._side, False)
        operators = float64_operators(self._network.proto)
        found = fewest_that_heal(operators, heals, _MOST) if shows else None
        return {
            "pair": self._pair,
            "operator": operator,
            "kernel": self._side._values[tensor],
            "named": self._named(tensor, chosen, units),
            "shows": shows,
            "fewest": [] if found is None else [operators[place] for place in found.places],
            "builds": 0 if found is None else found.tries,
        }

    def _named(self, tensor: str, chosen: Array, units: int) -> list[str]:
        """Kernels that replay names."""
        side, network = self._side, self._network
        outputs = {name for node in network.proto.graph.node for name in node.output if name}
        cuts = [key for key, item in side.graph.tensors.items() if item.observable and key in outputs]
        feeds = {side.input_names[key]: array for key, array in network.feeds.items()}
        with disturb(side, tensor, chosen, units):
            told = replay(side, feeds, self._exact.truth, pieces_of(network.proto, cuts), self._plain).errors
        return sorted({side._values[item.tensor] for item in told if item.change in INTRODUCED})

    def _beyond(self, answers: Mapping[str, Array]) -> bool:
        exact, bound = self._exact.truth, self._exact.bound
        return any(judge(one, one, exact[name], bound[name]).one.beyond for name, one in answers.items())

    def _built(self, name: str, **options: Any) -> TvmNetwork:
        setting = _TVM.settings[name]
        with tempfile.TemporaryDirectory(dir=self._folder) as made:
            setting = setting.with_options({**setting.options, **options})
            found = _TVM.observed(self._network.model, setting, Path(made))
        assert isinstance(found, TvmNetwork)
        return found


def report(rows: Sequence[Row]) -> str:
    """A table of rows."""
    plants = [plant for row in rows for plant in row.result.get("plants", ())]
    lines = [
        "| pair | disturbed | how | named | at least | nothing else | builds, median | most |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for title, some in [(f"O0, {pair}", [item for item in plants if item["pair"] == pair]) for pair in UNITS] + [
        ("all that shows at outputs", [item for item in plants if item["shows"]]),
        ("all", plants),
    ]:
        if some:
            lines.append(_line(title, some, "replay", "kernel", "named"))
            lines.append(_line("", some, "bisection over float64", "operator", "fewest"))
    without = sum(row.status != "measured" for row in rows)
    return "\n".join([*lines, "", f"{len(rows) - without} networks, {without} without a disturbance"])


def _line(title: str, plants: Sequence[Mapping[str, Any]], how: str, guilty: str, said: str) -> str:
    share = sum(plant[guilty] in plant[said] for plant in plants) / len(plants)
    alone = sum(list(plant[said]) == [plant[guilty]] for plant in plants) / len(plants)
    builds = [plant["builds"] for plant in plants if plant["shows"]] if guilty == "operator" else [0]
    few = f"{statistics.median(builds):g} | {max(builds)}" if builds else "- | -"
    return f"| {title} | {len(plants)} | {how} | {share:.1%} | {at_least(share, len(plants))} | {alone:.1%} | {few} |"


def main() -> int:
    """Run and print."""
    trial = ("benchmarks.trace.bisected:run", _TIMEOUT, "kernels")
    ask(__doc__, Row, plan, trial, report, lambda row: f"{row.status}, {len(row.result.get('plants', ()))} plants")
    return 0


if __name__ == "__main__":
    sys.exit(main())
