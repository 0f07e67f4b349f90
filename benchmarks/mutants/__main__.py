"""How many wrong lines the quick tests notice, of those that bear a verdict.

    python -m benchmarks.mutants [--seed N] [--first N] [--seconds S] [--json FILE] [--fresh] [--again]
                                [--match TEXT] [--list]
    python -m benchmarks.mutants --tables FILE

cosmic-ray's operators say what can be written otherwise in the files of `judging.py`; a seed draws from that, and
those of `by_hand.py` come first. Each mutant is put into a copy of the repository, where a process that is forked
from this one, with the frameworks imported, runs the quick tests that reach the changed line until one fails. Mutants
that change nothing that matters have their reasons in `explained.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import signal
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.mutants.by_hand import by_hand
from benchmarks.mutants.copying import copied, mutated
from benchmarks.mutants.drawing import drawn
from benchmarks.mutants.judging import DEVELOPMENT, FOLDERS, MODULES, REPORTING, WARM
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.processes import OUTPUT, forked, tests_in, warmed
from benchmarks.mutants.reaching import Reached, reached
from benchmarks.mutants.rows import Fate, Row, explanations, read_rows, table, unexplained, write_rows

_ROOT = Path(__file__).parents[2]
_KEPT = _ROOT / "generated" / "mutants"
_STARTING, _SLOWER = 60.0, 5.0  # seconds, and times the seconds of the tests, after which they're said not to end


def main() -> int:
    """Run and print; returns 1 for a mutant that is neither caught nor explained."""
    options = _options()
    if options.tables:
        rows = read_rows(options.tables)[1]
    else:
        mutants = [*by_hand(_ROOT), *itertools.islice(drawn(_ROOT, MODULES, options.seed), options.first)]
        if options.match:
            mutants = [mutant for mutant in mutants if options.match in mutant.text]
        if options.list:
            print("\n".join(mutant.text for mutant in mutants))
            return 0
        rows = _run(mutants, options)
    known = explanations()
    print(table(rows, known))
    return 1 if unexplained(rows, known) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seed",
        type=int,
        default=REPORTING,
        help=f"of what is drawn ({REPORTING}; tests were written for {DEVELOPMENT})",
    )
    parser.add_argument("--first", type=int, default=200, help="so many of what is drawn (200)")
    parser.add_argument("--seconds", type=float, default=90.0, help="of tests, at most, for each mutant (90)")
    parser.add_argument("--json", type=Path, help="keeps what became of each; a run that has it goes on")
    parser.add_argument("--fresh", action="store_true", help="doesn't go on with that")
    parser.add_argument(
        "--again", action="store_true", help="tries those of it once more that are neither noticed nor explained"
    )
    parser.add_argument("--match", help="only mutants with this in their file, operator, or lines")
    parser.add_argument("--list", action="store_true", help="show the mutants")
    parser.add_argument("--tables", type=Path, help="show what such a file has")
    return parser.parse_args()


def _run(mutants: list[Mutant], options: argparse.Namespace) -> list[Row]:
    path = options.json or _KEPT / f"seed-{options.seed}.json"
    about = {"seed": options.seed, "code": _digest()}
    rows = [] if options.fresh else _kept(path, about)
    if options.again:
        lost = unexplained(rows, explanations())
        rows = [row for row in rows if row not in lost]
    known = {(row.mutant.line, row.mutant.key) for row in rows}
    left = [mutant for mutant in mutants if (mutant.line, mutant.key) not in known]
    if not left:
        return rows
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the copy goes, and what runs in it
    warmed(WARM)
    with copied(_ROOT) as copy:
        tests = reached(copy, _ROOT, FOLDERS, _KEPT / "reached.json", _say)
        for place, mutant in enumerate(left, 1):
            rows.append(_tried(copy, mutant, tests, options.seconds))
            write_rows(path, about, rows)
            _say(f"{place}/{len(left)} {rows[-1].seconds:.0f} s {rows[-1].fate} {mutant.text}\n  {rows[-1].noticed}")
    return rows


def _kept(path: Path, about: dict[str, Any]) -> list[Row]:
    """Rows that a run has already. Ends the program where its file is of other code or another seed."""
    if not path.exists():
        return []
    before, rows = read_rows(path)
    if before != about:
        sys.exit(f"{path} is of another run or other code ({before}, now {about}). Give --fresh, or another file.")
    return rows


def _tried(copy: Path, mutant: Mutant, tests: Reached, most: float) -> Row:
    groups, seconds = tests.tests(mutant, most)
    if not groups:
        return Row(mutant, Fate.UNREACHED, "", 0.0)
    started = time.perf_counter()
    with mutated(copy, mutant):
        told = forked(copy, _STARTING + _SLOWER * seconds, tests_in, groups)
    passed = time.perf_counter() - started
    if told is None:
        return Row(mutant, Fate.TIMED_OUT, f"after {passed:.0f} s, {seconds:.0f} s are usual", passed)
    if "broken" in told:
        sys.exit(f"{mutant.text}\n{told['broken']}\n{(copy / OUTPUT).read_text()[-2000:]}")
    count = sum(map(len, groups.values()))
    return Row(mutant, Fate.CAUGHT if told["failed"] else Fate.SURVIVED, told["failed"] or f"{count} tests", passed)


def _digest() -> str:
    """Of what is mutated: a run doesn't go on with other code."""
    code = b"".join((_ROOT / file).read_bytes() for file in MODULES)
    return hashlib.sha256(code).hexdigest()[:16]


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
