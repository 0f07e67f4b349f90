"""The route matrix of a configuration's models.

    python -m benchmarks.route_matrix examples/route-matrix.json [-o docs/measured/route-matrix.md]

Each model is made in each of the five formats; each of those files is converted into the other four and compared with
it. If a route fails, others around the failing converter are tried. It ends with 0 if every direction works on its
own route. The folders of the audits lie in the configuration's `output`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.measured import made_by
from benchmarks.route_matrix.running import run_matrix
from benchmarks.route_matrix.table import matrix_markdown
from conrepair.application.config.read import load_for_run
from conrepair.application.report.audit_folder import write_audit
from conrepair.ground.runtime.shown.progress import ProgressDisplay


def main(words: Sequence[str] | None = None) -> int:
    """Run and print; returns `Matrix.exit_code`.

    Args:
        words: Of the command line, if not the process's.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, help="of which models, data and limits are used")
    parser.add_argument("-o", "--output", type=Path, help="write the table there")
    options = parser.parse_args(words)
    config, base = load_for_run(options.config, quiet=False), options.config.absolute().parent
    with ProgressDisplay(quiet=False) as display:
        result = run_matrix(config, base, display)
    for audit in result.audits:
        write_audit(audit, base / config.output / "store")
    text = matrix_markdown(result, made_by(f"python -m benchmarks.route_matrix {options.config}"))
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    print(text)
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
