"""Whether right targets, which are only written otherwise, are left alone.

    python -m benchmarks.rightness [--seeds development|reporting] [--groups GROUP,...] [--case NAME ...] [--list]
                                   [--first N] [--lanes N] [--json FILE] [--fresh] [-o FILE]
    python -m benchmarks.rightness --tables FILE

Small networks of many families, drawn from a seed, that PyTorch's two exporters write for opsets 13 to 21, and
networks of attention that are written by hand. Reporting has other networks than development, and families that
development hasn't. Groups: "rewritten" (at places and with numbers that a seed draws, or by a tool), "exported
otherwise" (by the other exporter, for another opset, by hand in another way), "converted" (by conrepair's
converters). A target counts only if its outputs are the source's, by other code than what's under test.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.common.generated import add_generated_options, run_judged
from benchmarks.common.judged import JudgedRow, judged_tables
from benchmarks.rightness.cases import plan

_TIMEOUT = 300.0


def main() -> int:
    """Run and print; returns 1 for a target that isn't called right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_generated_options(parser)
    return run_judged(parser.parse_args(), plan, "benchmarks.rightness.trial:run", _TIMEOUT, _report)


def _report(rows: list[JudgedRow]) -> str:
    return judged_tables(
        rows,
        {
            "network": lambda row: row.case.model.rpartition("-")[0],
            "source": lambda row: row.case.source,
            "written": lambda row: row.case.rewriting or " ".join(row.case.route) or row.case.group,
        },
    )


if __name__ == "__main__":
    sys.exit(main())
