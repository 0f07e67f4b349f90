"""Whether faults of attention are seen, and right networks of attention, written otherwise, are left alone.

    python -m benchmarks.attention [--seeds development|reporting] [--groups GROUP,...] [--case NAME ...] [--list]
                                   [--first N] [--lanes N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.attention --tables FILE

Networks are drawn from a seed: encoders and decoders with masks of every sort, written as exports write them. Those
of the reporting seeds differ in sizes and in what's combined with what. Groups: "faulty" (a fault in one block or in
all), "faulty and written otherwise", "right" (written otherwise, or rewritten by tools; nothing may be found). Only
what changes an output by more than 1e-4 in float64 counts as a fault; the others are counted as "no effect".
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.attention.cases import plan
from benchmarks.common.generated import add_generated_options, run_judged
from benchmarks.common.judged import JudgedRow, judged_tables

_TIMEOUT = 300.0


def main() -> int:
    """Run and print; returns 1 for a right target that isn't called right, or a fault that isn't called one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_generated_options(parser)
    return run_judged(parser.parse_args(), plan, "benchmarks.attention.trial:run", _TIMEOUT, _report)


def _report(rows: list[JudgedRow]) -> str:
    def about(row: JudgedRow, name: str) -> str:
        return str(row.result.get("about", {}).get(name, ""))

    return judged_tables(
        rows,
        {
            "blocks": lambda row: row.case.rewriting if row.faulty else "",
            "mask": lambda row: about(row, "mask"),
            "position": lambda row: about(row, "position"),
            "massive": lambda row: (
                f"{about(row, 'massive')} {row.result['about']['magnitude']:.0e}" if about(row, "massive") else ""
            ),
            "fault": lambda row: row.case.faults[0] if row.faulty else "",
            "written": lambda row: "" if row.faulty else row.case.rewriting or "another writing",
        },
    )


if __name__ == "__main__":
    sys.exit(main())
