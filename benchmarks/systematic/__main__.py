"""Whether faults in every layer of a sort are found, said in few words, and repaired.

    python -m benchmarks.systematic [--seeds development|reporting] [--groups GROUP,...] [--case NAME ...] [--list]
                                    [--only NETWORK,...] [--formats FORMAT,...] [--first N] [--lanes N] [--seconds N]
                                    [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.systematic --tables FILE

What a converter gets wrong, it gets wrong wherever it meets it: the epsilon of every BatchNorm, the weights of every
layer in fewer bits. Group "everywhere" has such faults, in ONNX files and in what's converted of them; "once" has the
same in one place of an ONNX file, to compare with. Each is repaired and measured anew as in `benchmarks.repair`, on
samples that the repair didn't see.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence

from benchmarks.common.cases import ROUTES, Case
from benchmarks.common.continuing import run_rows
from benchmarks.common.generated import add_generated_options, chosen_generated, run_generated
from benchmarks.common.rows import read_rows
from benchmarks.repair.rows import Row
from benchmarks.systematic.cases import plan
from benchmarks.systematic.networks import NETWORKS
from benchmarks.systematic.tables import named_places, places_of, report, ruled_places
from conrepair.application.engine.fingerprint import code_fingerprint

_SECONDS = 240.0
_BESIDE = 900.0  # seconds that all the rest of a case may take


def main() -> int:
    """Run and print; returns 1 for a fault that isn't repaired."""
    options = _options()
    if options.tables:
        print(report(read_rows(Row, options.tables)[1]))
        return 0

    def chosen(seeds: Sequence[int]) -> list[Case]:
        return [case for case in plan(seeds) if case.model in options.only and case.format in options.formats]

    cases = chosen_generated(options, chosen)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    about = {"seeds": options.seeds, "seconds": options.seconds, "code": code_fingerprint("repair")[:16]}
    run = functools.partial(
        run_generated,
        function="benchmarks.systematic.trial:run",
        timeout=options.seconds + _BESIDE,
        more={"seconds": options.seconds},
    )
    rows = run_rows(options, Row, about, cases, run, _told)
    text = report(rows)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return int(any(row.agrees is False or (row.counts and row.score.outcome != "repaired") for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_generated_options(parser)
    for name, what, known in (("only", "NETWORK", list(NETWORKS)), ("formats", "FORMAT", ["onnx", *ROUTES])):
        parser.add_argument(
            f"--{name}",
            type=lambda text: text.split(","),
            default=known,
            metavar=f"{what},...",
            help=", ".join(known),
        )
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="for the search of one repair (default 240)")
    return parser.parse_args()


def _told(row: Row) -> str:
    if row.status != "measured":
        return f"{row.status} {row.words[:200]}"
    places = len(places_of(row))
    return f"{row.score.outcome}, {named_places(row)} of {places} places named, {ruled_places(row)} by one rule"


if __name__ == "__main__":
    sys.exit(main())
