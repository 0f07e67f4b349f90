"""What `compare` and `localize` say of pairs whose label is known, beside what exact values say.

    python -m benchmarks.judges [--seeds development|reporting] [--first N] [--only KIND] [--list] [--save FILE]
                                [--against FILE] [-o FILE]
    python -m benchmarks.judges --rows FILE [--against FILE] [-o FILE]

A pair is a network and a target made of it: its build by TVM, a conversion, a file that is written otherwise, answers
that were recorded; with a fault or without. Kinds: "right", "faulty", "ill-conditioned" (few digits are left, or
numbers are at the ends of what functions hold), "deep" (40 to 200 layers), "quantized". Its label is what it is by
construction, as far as values in float64 say so, too: "right", "faulty", or "either" where a fault is within what
rounding explains, or a target's own kernels are beyond it. `--save` keeps a row of each pair as JSON lines, and goes
on from those that are there; `--against` lists every verdict that was another one in such a file, and whether it's
better now. Returns 1 if one is worse.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.judges.cases import KINDS, SEEDS, plan
from benchmarks.judges.rows import Rows, made, read_rows
from benchmarks.judges.tables import changes, summary, wrong

_COMMAND = "python -m benchmarks.judges"


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", choices=list(SEEDS), default="development")
    parser.add_argument("--first", type=int, metavar="N", help="only so many; kinds come in turn")
    parser.add_argument("--only", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--list", action="store_true", help="name the pairs, and run none")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep rows there; a run is continued from them")
    parser.add_argument("--against", type=Path, metavar="FILE", help="list what's another verdict than there")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="run nothing; tables of what --save kept there")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the tables there")
    options = parser.parse_args()
    cases = [case for case in plan(SEEDS[options.seeds]) if options.only in (None, case.kind)][: options.first]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    if options.rows:
        rows = read_rows(options.rows)
    else:
        kept = Rows(options.save, f"{_COMMAND} --seeds {options.seeds}")
        with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch:
            for row in made([case for case in cases if case.name not in kept.known], Path(scratch)):
                kept.add(row)
        rows = kept.known
    told = [summary(rows), wrong(rows)]
    if options.against:
        told = [changes(read_rows(options.against), rows)]
    text = "\n\n".join(told)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return int(bool(options.against) and "| worse |" in text)


if __name__ == "__main__":
    sys.exit(main())
