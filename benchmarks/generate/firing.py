"""Which optimizations generated networks set off: `python -m benchmarks.generate.firing --networks 1000`.

An optimization of ONNX Runtime fired if the optimized graph is another without it (in brackets: never so, but the
graph is another with it alone); a pass of TVM's on Relax if it changes the module. A line for each: in how many
networks, and in which patterns' company. With `--patterns-only` each pattern is a network of its own.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import onnx

from benchmarks.generate.firing_relax import NOT_IMPORTED, PASSES, fired_of_folder
from conrepair.formats.onnx.load.optimizers import OPTIMIZERS
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.networks import NotMadeError, made
from conrepair_lab.generate.onnx_form import accepted, model_of
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.settings.ports import NotAllowedError, Support
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.weaving import Weaver
from conrepair_lab.generate.wishes import Wishes
from conrepair_lab.systems.firing import fired, optimized, singled_out

_OPSETS = (17, 18, 20, 21)
_MOST = 4096

_ELSEWHERE = (
    "BiasDropoutFusion",
    "BiasSoftmaxFusion",
    "MatMulActivationFusion",
    "GroupQueryAttentionFusion",
    "GroupQueryAttentionPreNormFusion",
)  # registered, but for other devices than a CPU

Made = tuple[onnx.ModelProto, Collection[str]]
"""A network, and names of the patterns and forms in it."""


@dataclass
class Table:
    """What fired.

    Attributes:
        system: Whose optimizations they are, as patterns' aims have it.
        names: Of the optimizations.
        networks: How many were looked at.
        counts: In how many an optimization fired.
        parts: By optimization, what was in those networks, with how many.
        alone: In how many it did with all others off, for those that never fired among others.
        errors: What optimizations raised, with how many.
    """

    system: str
    names: tuple[str, ...]
    networks: int = 0
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    parts: dict[str, collections.Counter[str]] = field(
        default_factory=lambda: collections.defaultdict(collections.Counter)
    )
    alone: collections.Counter[str] = field(default_factory=collections.Counter)
    errors: collections.Counter[str] = field(default_factory=collections.Counter)

    def add(self, found: Collection[str], parts: Collection[str]) -> None:
        """Count what fired in a network."""
        self.networks += 1
        self.counts.update(found)
        for name in found:
            self.parts[name].update(parts)

    def printed(self) -> None:
        """The table, as Markdown."""
        reached = sum(1 for name in self.names if self.counts[name] or self.alone[name])
        print(f"\n{self.system}: {reached} of {len(self.names)} ({reached / len(self.names):.0%}) fired")
        print(f"\n| optimization | networks of {self.networks} | patterns for it there |\n|---|---|---|")
        for name in self.names:
            number = str(self.counts[name]) if self.counts[name] or not self.alone[name] else f"({self.alone[name]})"
            print(f"| {name} | {number} | {self._company(name)} |")
        for text, number in self.errors.most_common():
            print(f"error in {number}: {text}")

    def _company(self, name: str) -> str:
        """The patterns made for an optimization that were in networks in which it fired, else all that were."""
        aimed = {item.name for item in patterns().values() if f"{self.system}:{name}" in item.aims}
        there = self.parts[name]
        found = [part for part, _ in there.most_common() if part in aimed]
        others = [] if found else [f"*{part}*" for part, _ in there.most_common(1)]
        return ", ".join([*found[:3], *others])


def random_networks(count: int, seed: int, exclude: tuple[str, ...] = ()) -> Iterator[Made]:
    """Networks as they're generated, of 10 to 20 nodes, without some operators."""
    supports = {opset: Probed(opset, accepted) for opset in _OPSETS}
    for place in range(count):
        random, opset = Random(f"{seed}/{place}"), _OPSETS[place % len(_OPSETS)]
        try:
            network = made(Wishes(nodes=10 + place % 11, opset=opset, exclude=exclude), random, supports[opset])
        except NotMadeError:
            continue
        yield network.model, network.parts


def of_folder(folder: Path) -> Iterator[Made]:
    """Somebody else's networks."""
    for path in sorted(folder.glob("*.onnx")):
        yield onnx.load(path), ()


def patterns_alone(seed: int) -> Iterator[Made]:
    """Each pattern as a network of its own, for each opset."""
    for opset in _OPSETS:
        for name, item in patterns().items():
            draft = Draft(opset)
            weaver = Weaver(draft, Random(f"{seed}/{opset}/{name}"), Support(), _MOST, name)
            try:
                with weaver.whole():
                    item.body(weaver)
            except NotAllowedError:
                continue
            yield model_of(draft, {}), (name,)


def fired_alone(model: onnx.ModelProto, names: Sequence[str]) -> set[str]:
    """Those that change the graph with all others off: another one may else do the same in their place."""
    text = model.SerializeToString()
    nothing = optimized(text, OPTIMIZERS)
    return singled_out(names, lambda on: optimized(text, [name for name in OPTIMIZERS if name not in on]) != nothing)


def by_onnxruntime(networks: Collection[Made], kept: Path | None) -> Table:
    """What ONNX Runtime's optimizations do to networks; those on which they fail are kept in a folder."""
    table, start = Table("onnxruntime", OPTIMIZERS), time.perf_counter()

    def tried(look: Callable[[], set[str]], model: onnx.ModelProto) -> set[str] | None:
        try:
            return look()
        except Exception as error:  # noqa: BLE001  # the runtime's errors have no common class
            table.errors[str(error)] += 1
            if kept is not None:
                kept.mkdir(parents=True, exist_ok=True)
                onnx.save(model, kept / f"{table.errors.total()}.onnx")
            return None

    for model, parts in networks:
        found = tried(partial(fired, model), model)
        if found is not None:
            table.add(found, parts)
    never = [name for name in OPTIMIZERS if not table.counts[name]]
    for model, parts in networks:
        found = tried(partial(fired_alone, model, never), model) or set()
        table.alone.update(found)
        for name in found:
            table.parts[name].update(parts)
    seconds = time.perf_counter() - start
    print(f"onnxruntime: {seconds:.0f} s; not for CPUs: {', '.join(_ELSEWHERE)}")
    return table


def by_relax(networks: Collection[Made]) -> Table:
    """What TVM's passes do to networks, as far as it imports them."""
    table, start = Table("relax", PASSES), time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        for place, (model, _) in enumerate(networks):
            onnx.save(model, Path(name) / f"{place}.onnx")
        answers = fired_of_folder(Path(name), len(networks))
        for (_, parts), answer in zip(networks, answers, strict=True):
            if answer is not None:
                table.add([key for key, text in answer.items() if text == "fired"], parts)
                table.errors.update(f"{key}: {text}" for key, text in answer.items() if text != "fired")
    print(f"relax: {table.networks} of {len(networks)} imported, {time.perf_counter() - start:.0f} s")
    return table


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=1000, help="how many networks")
    parser.add_argument(
        "--relax", type=int, default=300, help="how many networks for TVM, of operators that it imports"
    )
    parser.add_argument("--models", type=Path, help="a folder of ONNX files, in place of networks")
    parser.add_argument("--patterns-only", action="store_true", help="each pattern alone, in place of networks")
    parser.add_argument("--keep", type=Path, help="a folder for networks on which ONNX Runtime's optimizations fail")
    parser.add_argument("--seed", type=int, default=0, help="of all that's drawn")
    said = parser.parse_args()
    for count, exclude, look in (
        (said.networks, (), partial(by_onnxruntime, kept=said.keep)),
        (said.relax, NOT_IMPORTED, by_relax),
    ):
        start = time.perf_counter()
        if said.models is not None:
            some: Iterator[Made] = of_folder(said.models)
        else:
            some = patterns_alone(said.seed) if said.patterns_only else random_networks(count, said.seed, exclude)
        networks = list(itertools.islice(some, count))
        woven = sum(any(part in patterns() for part in parts) for _, parts in networks)
        print(f"{len(networks)} networks, {woven} with patterns, made in {time.perf_counter() - start:.0f} s")
        if networks:
            look(networks).printed()


if __name__ == "__main__":
    _main()
