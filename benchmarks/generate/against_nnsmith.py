"""Our networks beside NNSmith's: `python -m benchmarks.generate.against_nnsmith --nnsmith-python PYTHON`.

Rates are in processor seconds a network, values included, one part of ours and one of NNSmith's by turns on one core;
what either finds out once (which element types can be run, or exported) is asked before. Then the same with the whole
round at ten operators: an ONNX model, two levels of ONNX Runtime, the comparison. Then how diverse both are.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

import onnx

from benchmarks.generate.nnsmith_process import NNSmith
from benchmarks.generate.onnx_draft import draft_of
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.generated import block, generated
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.networks import GeneratedNetwork, NotMadeError
from conrepair_lab.generate.onnx_form import RefusedError, accepted
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

__all__ = ["Rate", "compared"]

_PART = 10
"""Networks of either, before it's the other's turn."""


@dataclass
class Rate:
    """What some networks took.

    Attributes:
        seconds: Of a processor, for each.
        without: How many there are none of, although they took their time.
        odd: How many have outputs that aren't finite, or that differ or fail with optimizations.
    """

    seconds: list[float] = field(default_factory=list)
    without: int = 0
    odd: int = 0

    @property
    def mean(self) -> float:
        """Seconds for each network that there is, failures included."""
        return sum(self.seconds) / max(1, len(self.seconds) - self.without)

    def __str__(self) -> str:
        return f"{1e3 * statistics.median(self.seconds):.1f} ms ({1e3 * self.mean:.1f})"


def compared(
    peer: NNSmith | None, wishes: Wishes, count: int, seed: int, *, vulnerable: bool = False, whole: bool = False
) -> list[Rate]:
    """Make networks, ours and NNSmith's by turns.

    Args:
        peer: NNSmith; None for ours alone.
        wishes: What ours should be like; NNSmith's have as many operators.
        count: How many.
        seed: Of what's drawn.
        vulnerable: Whether NNSmith's have operators of a limited domain; ours do.
        whole: Whether they're written as ONNX, run at two levels and compared.
    """
    mine, theirs = Rate(), Rate()
    own = _ours(wishes, seed)
    next(own)
    if peer is not None:
        peer.made(
            wishes.nodes, [seed + count], vulnerable=vulnerable, run=whole
        )  # what it imports when it's first used
    for start in range(0, count, _PART):
        for _ in range(_PART):
            begun = time.process_time()
            network = next(own)
            odd = _round(network, seed) if whole and isinstance(network, GeneratedNetwork) else False
            mine.seconds.append(time.process_time() - begun)
            mine.without += isinstance(network, NotMadeError)
            mine.odd += odd
        if peer is None:
            continue
        seeds = range(seed + start, seed + start + _PART)
        for row in peer.made(wishes.nodes, seeds, vulnerable=vulnerable, run=whole):
            theirs.seconds.append(row["whole"] if whole and "whole" in row else row["seconds"])
            theirs.without += "failed" in row
            theirs.odd += not (row.get("ran", True) if whole else row.get("finite", True))
    return [mine, theirs] if peer is not None else [mine]


def _ours(wishes: Wishes, seed: int) -> Iterator[GeneratedNetwork | NotMadeError]:
    support = _support(wishes.opset, wishes.names)
    *_, network = block(wishes, seed + 1, 0, support)  # which element types there are is asked once
    yield network
    number = 0
    while True:
        yield from block(wishes, seed, number, support)
        number += 1


@cache
def _support(opset: int, operators: tuple[str, ...]) -> Probed:
    """With all that is asked once."""
    support = Probed(opset, accepted)
    for op in operators:
        support.ask(op)
    return support


def _round(network: GeneratedNetwork, seed: int) -> bool:
    try:
        return generated(network, seed, 0).judged().about["optimized"]["verdict"] != "same"
    except RefusedError:
        return True


def diversities(peer: NNSmith, operators: int, seed: int, *, vulnerable: bool) -> dict[str, str]:
    """How diverse networks of ten operators are that have so many together, by whose they are."""
    texts = {
        "ours": _diversity(
            (
                network.draft
                for network in islice(_ours(Wishes(), seed), 1, None)
                if isinstance(network, GeneratedNetwork)
            ),
            operators,
        )
    }
    with tempfile.TemporaryDirectory() as folder:
        seeds = range(seed, seed + operators // 5)
        peer.made(10, seeds, vulnerable=vulnerable, folder=Path(folder))
        models = (onnx.load(path) for path in sorted(Path(folder).glob("*.onnx"), key=lambda path: int(path.stem)))
        texts["NNSmith's"] = _diversity(map(draft_of, models), operators)
    return texts


def _diversity(drafts: Iterable[Draft], operators: int) -> str:
    ones = sizes = 0
    found = Diversity(())
    for draft in drafts:
        found.add(draft)
        for name in draft.made():
            shape = draft.tensors[name].type.shape
            sizes += len(shape)
            ones += sum(size == 1 for size in shape)
        if found.nodes.total() >= operators:
            break
    found.operators = tuple(found.nodes)
    return (
        f"{found.nodes.total()} nodes of {len(found.operators)} operators, {len(found.edges)} pairs of operators, "
        f"{sum(map(len, found.settings.values()))} settings, {len(found.ancestries)} ancestries; "
        f"edge {found.edge:.3f}, vertex {found.vertex:.3f}, structural {found.structural:.3f}; "
        f"sizes of one {ones / max(1, sizes):.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nnsmith-python", type=Path, required=True, help="of an environment that has NNSmith")
    parser.add_argument("--networks", type=int, default=200, help="of each number of operators up to 20")
    parser.add_argument("--nodes", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--alone", type=int, nargs="*", default=[50, 100, 200], help="operators of ours alone")
    parser.add_argument("--operators", type=int, default=4800, help="that diversity is measured on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vulnerable", action="store_true", help="NNSmith's with operators of a limited domain, too")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # NNSmith's process has the same core
    with NNSmith(arguments.nnsmith_python) as peer:
        print(peer.about)
        print("processor time a network, median (mean); in brackets how many there are none of, and are odd")
        for nodes, whole in [*((nodes, False) for nodes in arguments.nodes), (10, True)]:
            mine, theirs = compared(
                peer,
                Wishes(nodes=nodes),
                arguments.networks,
                arguments.seed,
                vulnerable=arguments.vulnerable,
                whole=whole,
            )
            print(
                f"{nodes:4} operators{', end to end' if whole else ''}: ours {mine} [{mine.without}, {mine.odd}], "
                f"NNSmith's {theirs} [{theirs.without}, {theirs.odd}], ratio "
                f"{statistics.median(theirs.seconds) / statistics.median(mine.seconds):.1f} "
                f"({theirs.mean / mine.mean:.1f})"
                f"{f', {1 / mine.mean:.1f} and {1 / theirs.mean:.1f} a second' if whole else ''}",
                flush=True,
            )
        for nodes in arguments.alone:
            count = max(_PART, arguments.networks * 10 // nodes // _PART * _PART)
            (mine,) = compared(None, Wishes(nodes=nodes), count, arguments.seed)
            print(f"{nodes:4} operators: ours {mine} [{mine.without}, {mine.odd}], {count} networks", flush=True)
        found = diversities(peer, arguments.operators, arguments.seed, vulnerable=arguments.vulnerable)
        for whose, text in found.items():
            print(f"{whose}: {text}")


if __name__ == "__main__":
    main()
