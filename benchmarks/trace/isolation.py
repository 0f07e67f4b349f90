"""The page of what's planted in builds and found again.

    python -m benchmarks.trace.isolation [--passes FILE] [--plants FILE] [--bisected FILE] [--note TEXT]
                                         [-o docs/measured/trace-isolation.md]

The files are those that `benchmarks.trace.faulty_passes`, `benchmarks.trace.plants` and `benchmarks.trace.bisected`
keep with `--json`. What no file is given of stays as the page has it.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.measured import made_by
from benchmarks.common.rows import read_rows
from benchmarks.common.running import SEEDS
from benchmarks.trace import bisected, faulty_passes, plants

_WIDTH = 115
_HEADING = "\n## "
_PAGE = """# Faults planted in builds, and found again

{made}

Networks are generated (10 operators of a list that TVM imports, opset 17, float32). Shares stand with their 97.5 %
bound by Clopper and Pearson.
"""
_TITLES = {
    "passes": "Passes made faulty",
    "plants": "Kernels disturbed as they run",
    "bisected": "Beside bisection over float64",
}
_MODULES: dict[str, Any] = {"passes": faulty_passes, "plants": plants, "bisected": bisected}
_WORDS = {
    "passes": """A pass on Relax damages one result, as a pass of its own or as a part of one that is there: scaled,
shifted, in half precision, reversed, bounded, without its sign, with a wrong constant, or an operand in its place.
Two that are planted at once do harm each by itself; those that go "together" do harm only if both ran.
Builds are the product's, with the settings `O3` and `fast` (fast math, this processor); {asked} of their
switches can be left out. Exact: causes, and what heals, are what was planted and nothing else. Draws whose
fault doesn't show beyond the bound of rounding, alone and with all passes on, aren't cases. Seconds are of
the processor, in one process.""",
    "plants": """What a kernel wrote is made larger by some units in the last place, through the virtual machine's
instrument, in one element or in all that aren't 0. `replay` names kernels as "generated" (wrong by the
bound) or "differs" (from the other side's on the same values). *found*: the disturbed one is among them;
*precision*: of those that are named, how many are disturbed; the last column leaves out those that are
named without a plant, too: kernels of fast math that are further apart from plain ones than most.""",
    "bisected": """PLiner finds the lines of a program that need a wider type: regions are computed in float64 and
halved where that heals. The same over the operators of these networks, beside `replay`, which takes no builds but the
two that are compared. One kernel is disturbed as above, of each network and pair; an operator in float64
has no such kernel any more, so it heals by construction, and what is measured is how often outputs show
anything to go by. *named*: the disturbed kernel (or, by bisection, its last operator) is among those that
are named; *nothing else*: and it's the only one. Builds are of the cases that show.""",
}


def main() -> None:
    """Read rows, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in _MODULES:
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/measured/trace-isolation.md"))
    parser.add_argument("--note", default="", help="what else is to be said of the rows that are given")
    options = parser.parse_args()
    before = options.output.read_text(encoding="utf-8") if options.output.exists() else ""
    known = dict(part.split("\n", 1) for part in before.split(_HEADING)[1:])
    sections = []
    for name, title in _TITLES.items():
        file = getattr(options, name)
        text = known.get(title) if file is None else f"\n{_section(name, file, options.note)}\n"
        sections += [] if text is None else [f"{_HEADING}{title}\n{text.rstrip()}\n"]
    given = " ".join(f"--{name} {name.upper()}.json" for name in _MODULES if getattr(options, name))
    page = _PAGE.format(made=made_by(f"python -m benchmarks.trace.isolation {given}"))
    options.output.write_text(page + "".join(sections), encoding="utf-8")


def _section(name: str, file: Path, note: str) -> str:
    module = _MODULES[name]
    about, rows = read_rows(module.Row, file)
    command = f"python -m {module.__name__} --seeds {about['seeds']} --json {name.upper()}.json"
    words = " ".join(_WORDS[name].split()).format(asked=_asked(rows))
    count = f"{len(rows)} of {len(module.plan(SEEDS[about['seeds']]))} cases, the first of a random order"
    parts = [f"The rows are those of `{command}`: {count}. {note}", words]
    return "\n\n".join([*(textwrap.fill(part, _WIDTH) for part in parts), module.report(rows)])


def _asked(rows: Sequence[Any]) -> str:
    """How many switches there were."""
    asked = [row.result["asked"] for row in rows if "asked" in row.result]
    return f"{min(asked)} to {max(asked)}" if asked else ""


if __name__ == "__main__":
    main()
