"""How well specifications say what ONNX Runtime takes: `python -m benchmarks.generate.constraints [OPERATOR ...]`.

For each operator settings are drawn inside of its specification and one step away from there, and ONNX Runtime
computes them. Precision: of what the specification allows, the share that runs, with the outputs' types as predicted.
Recall: of what runs, the share that the specification allows.
"""

from __future__ import annotations

import argparse
import collections
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.common.measured import made_by
from benchmarks.generate.reasons import crashes, reason_of
from benchmarks.generate.settings import accepts, inside, read, stepped
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.support import Probed

__all__ = ["Measured", "measured"]


@dataclass
class Measured:
    """What was found for an operator.

    Attributes:
        inside: Settings drawn inside.
        allowed: Those, inside and outside, that the specification allows.
        ran: Of `allowed`, those that ran as predicted.
        accepted: Those that ran.
        wrong: Messages of those that the specification allows and that didn't run, with how many.
        forbidden: What ran and is forbidden without a reason: the step and the refusal, with how many.
        explained: What ran and is forbidden for a reason, with how many.
    """

    inside: int = 0
    allowed: int = 0
    ran: int = 0
    accepted: int = 0
    wrong: collections.Counter[str] = field(default_factory=collections.Counter)
    forbidden: collections.Counter[str] = field(default_factory=collections.Counter)
    explained: collections.Counter[str] = field(default_factory=collections.Counter)

    @property
    def precision(self) -> float:
        return self.ran / max(1, self.allowed)

    @property
    def recall(self) -> float:
        """Of all that ran."""
        return self.ran / max(1, self.accepted)

    @property
    def recall_explained(self) -> float:
        """Of what ran and isn't forbidden for a reason."""
        return self.ran / max(1, self.accepted - self.explained.total())


def measured(op: str, opset: int, settings: int, seed: int, support: Support) -> Measured:
    """Measure one specification.

    Args:
        op: The operator.
        opset: Of the standard's operators.
        settings: How many inside, and how many outside.
        seed: Of what's drawn.
        support: Element types of the runtime.
    """
    random = Random(seed + zlib.crc32(op.encode()))
    generator = np.random.default_rng(random.randrange(2**32))
    result = Measured()
    for _ in range(settings):
        case = inside(op, opset, random, support)
        if case is None:
            continue
        result.inside += 1
        _, refusal = read(case, support)
        if refusal is not None:
            result.wrong[f"drawn, and not allowed when it's read: {refusal}"] += 1
        result.allowed += 1
        message = accepts(case, generator)
        if message is None:
            result.ran += 1
            result.accepted += 1
        else:
            result.wrong[message[:300]] += 1
        other = stepped(case, random)
        if other is None:
            continue
        other, refusal = read(other, support)
        if refusal is not None and crashes(op, f"[{other.step}] {refusal}"):
            continue
        message = accepts(other, generator)
        result.accepted += message is None
        if refusal is None:
            result.allowed += 1
            result.ran += message is None
            if message is not None:
                result.wrong[f"[{other.step}] {message[:300]}"] += 1
        elif message is None:
            text = f"[{other.step}] {refusal}"
            reason = reason_of(op, text)
            (result.forbidden if reason is None else result.explained)[reason or text] += 1
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--settings", type=int, default=200)
    parser.add_argument("--opset", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=3, help="messages for each operator")
    parser.add_argument("--table", type=Path, help="a Markdown file for the table, reasons included")
    arguments = parser.parse_args()
    support = Probed(arguments.opset, accepted)
    known = specifications()
    every: dict[str, Measured] = {}
    for op in arguments.operators or known:
        if known[op].least_opset > arguments.opset:
            continue
        found = measured(op, arguments.opset, arguments.settings, arguments.seed, support)
        every[op] = found
        shares = f"precision {found.precision:6.1%} recall {found.recall:6.1%} {found.recall_explained:6.1%}"
        print(f"{op:24} {found.inside:4} {shares}")
        for message, count in found.wrong.most_common(arguments.show):
            print(f"      wrong {count}: {message}")
        for message, count in found.forbidden.most_common(arguments.show):
            print(f"      forbidden {count}: {message}")
    if arguments.table is not None:
        arguments.table.write_text(_table(every, arguments), encoding="utf-8")


def _table(every: dict[str, Measured], arguments: argparse.Namespace) -> str:
    """What was measured, as Markdown."""
    total = Measured(
        *(sum(getattr(found, name) for found in every.values()) for name in ("inside", "allowed", "ran", "accepted")),
        explained=sum((found.explained for found in every.values()), collections.Counter()),
    )
    command = f"python -m benchmarks.generate.constraints --opset {arguments.opset} --seed {arguments.seed}"
    lines = [
        made_by(f"{command} --table FILE"),
        "",
        f"Opset {arguments.opset}, seed {arguments.seed}, {arguments.settings} settings inside, as many outside: "
        f"precision {total.precision:.2%}, recall {total.recall:.2%}, without what is forbidden for a reason "
        f"{total.recall_explained:.2%}.",
        "",
        "| operator | inside | precision | recall | with reasons | forbidden for a reason |",
        "|---|---|---|---|---|---|",
    ]
    for op, found in every.items():
        reasons = "; ".join(f"{reason} ({count})" for reason, count in found.explained.most_common())
        shares = f"{found.precision:.1%} | {found.recall:.1%} | {found.recall_explained:.1%}"
        lines.append(f"| {op} | {found.inside} | {shares} | {reasons} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
