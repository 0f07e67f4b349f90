"""What targets take of ONNX, as docs/measured/generate-support.md: `python -m benchmarks.generate.support tvm`.

What was found before, with the same versions, is in the user's cache.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.common.measured import made_by
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.narrowing import support_of, target
from conrepair_lab.commands.generate import HEADER, cells_of
from conrepair_lab.generate.narrowing.table import Acceptance

__all__ = ["section"]

_PAGE = Path("docs/measured/generate-support.md")
_HEAD = (
    "# What ONNX Runtime and TVM take of ONNX\n\n"
    "{made_by}\n\n"
    "[generate.md](../generate.md#what-a-target-supports) says how. `takes` is the share of an operator's settings\n"
    "that were taken; element types and numbers of axes are those that were seen to be taken, by type variable and\n"
    "by input.\n"
)


def section(name: str, found: Mapping[str, Acceptance]) -> Iterator[str]:
    """Lines of a target's part.

    Args:
        name: Of the target.
        found: What it takes, by operator.
    """
    versions = ", ".join(f"{key} {value}" for key, value in target(name).versions().items() if key != "code")
    some = [op for op, item in found.items() if item.taken]
    every = [op for op in some if found[op].taken == found[op].settings]
    shares = [item.share for item in found.values()]
    yield f"## {name}\n"
    yield (
        f"{versions}: {len(some)} of {len(found)} operators, {len(every)} of them in all settings; "
        f"{sum(shares) / len(shares):.0%} of the settings, on average over operators.\n"
    )
    yield f"In all settings: {', '.join(every) or 'none'}.\n"
    yield f"In none: {', '.join(op for op in found if op not in some) or 'none'}.\n"
    yield f"| {' | '.join(HEADER)} |"
    yield "|---" * len(HEADER) + "|"
    for op, item in found.items():
        if op not in every:
            yield f"| {op} | {' | '.join(cell.replace('|', '/') for cell in cells_of(item))} |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=["onnxruntime", "tvm"])
    parser.add_argument("--opset", type=int, default=20)
    parser.add_argument("--output", type=Path, default=_PAGE)
    arguments = parser.parse_args()
    targets = " ".join(arguments.targets)
    line = made_by(f"python -m benchmarks.generate.support {targets} --opset {arguments.opset}")
    lines = [_HEAD.format(made_by=line)]
    with ProgressDisplay() as display:
        for name in arguments.targets:
            lines += section(name, support_of(name, opset=arguments.opset, display=display))
    arguments.output.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
