"""Networks of the families that people convert: are their faults seen, named and repaired, right ones left alone?

    python -m benchmarks.families [--seeds development|reporting] [--only ARCHITECTURE,...] [--groups GROUP,...]
                                  [--routes ROUTE,...] [--case NAME ...] [--list] [--first N] [--lanes N]
                                  [--json FILE] [--fresh] [--keep FOLDER] [-o FILE]
    python -m benchmarks.families --tables FILE

Each case is two files: a network as its framework saves it, and what an exporter made of it, or of a network in which
something is wrong. `compare`, `localize` and `repair` are asked of each as at the command line, in warm workers.
Rows are kept in generated/benchmarks/families, from where a run is continued.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.cases import Case
from benchmarks.common.continuing import run_rows
from benchmarks.common.generated import add_generated_options, chosen_generated, run_generated
from benchmarks.common.rows import read_rows
from benchmarks.families.cases import plan
from benchmarks.families.rows import FamilyRow
from benchmarks.families.tables import tables
from conrepair.application.engine.fingerprint import code_fingerprint

_TIMEOUT = 300.0
_KEPT = Path("generated/benchmarks/families")


def main() -> int:
    """Run and print; returns 1 for a case in which something isn't as it should be."""
    options = _options()
    if options.tables:
        print(tables(read_rows(FamilyRow, options.tables)[1], options.worst))
        return 0

    def chosen(seeds: Sequence[int]) -> list[Case]:
        cases = plan(seeds)
        if options.only:
            cases = [case for case in cases if case.model in options.only]
        return [case for case in cases if not options.routes or case.base in options.routes]

    cases = chosen_generated(options, chosen)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    if options.json is None:
        options.json = _KEPT / f"{options.seeds}.json"
        options.json.parent.mkdir(parents=True, exist_ok=True)
    about = {"seeds": options.seeds, "code": code_fingerprint("repair")[:16]}
    keep = str(options.keep.absolute()) if options.keep else ""
    run = functools.partial(
        run_generated, function="benchmarks.families.trial:run", timeout=_TIMEOUT, more={"keep": keep}
    )
    rows = run_rows(options, FamilyRow, about, cases, run, _told)
    text = tables(rows, options.worst)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return int(any(row.badness for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_generated_options(parser)
    for name, what in (("only", "ARCHITECTURE"), ("routes", "ROUTE")):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), metavar=f"{what},...")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the files of each case there")
    parser.add_argument("--worst", type=int, default=10, metavar="N", help="how many of the worst cases are listed")
    return parser.parse_args()


def _told(row: FamilyRow) -> str:
    if row.status != "measured":
        return f"{row.status} {row.words[:200]}"
    said = " ".join(f"{verb} {verdict}" for verb, verdict in row.verdicts.items())
    marks = f"{'named ' if row.named else ''}{'repaired' if row.repaired else ''}" if row.faulty else ""
    return f"{said}; {marks} {row.seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
