"""Whether every damaged file, drawn configuration and drawn command line ends in an exit code and a sentence.

    python -m benchmarks.fuzz [--sorts SORT,...] [--count N] [--seed N] [--limit SECONDS] [--results FILE]

Each case is a command line, run by the program's own entry. None may end in a traceback, take longer than the limit,
return an exit code that isn't documented for it, or change a file that it was given. What was done is in the file of
results; started again, the run goes on where it was stopped, also behind a case that has killed the process.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import faulthandler
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.fuzz.cases import SORTS
from benchmarks.fuzz.seeds import FORMATS, write_data, write_models
from benchmarks.fuzz.trial import Ended, carry_out, warm

_RENEWED = 200  # cases, behind which there's another worker
_CUT = 77  # exit code of a process that stops a case at its limit


def main() -> int:
    """Run what is left, print the table; returns 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sorts", default=",".join(SORTS), help=f"Of {', '.join(SORTS)}.")
    parser.add_argument("--count", type=int, default=100, help="Cases of each sort.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120.0, help="Seconds for a case.")
    parser.add_argument("--results", type=Path, default=Path("generated/fuzz.jsonl"))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [f"{sort}:{number}" for number in range(options.count) for sort in options.sorts.split(",")]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    if options.here:
        return _run(names, options)
    started = time.perf_counter()
    while _left(names, options.results):
        subprocess.run([sys.executable, "-m", "benchmarks.fuzz", "--here", *sys.argv[1:]], check=False)
        _settle(options)
    ended = [item for item in _read(options.results) if item.name in set(names)]
    print(_table(ended))
    print(f"{time.perf_counter() - started:.0f} s here, {sum(item.seconds for item in ended):.0f} s in all cases")
    return int(any(item.wrong for item in ended))


def _run(names: list[str], options: argparse.Namespace) -> int:
    """Run what is left in this process; it's killed where a case takes too long."""
    left = _left(names, options.results)
    with tempfile.TemporaryDirectory(prefix="conrepair-fuzz-") as scratch, contextlib.ExitStack() as stack:
        place = Path(scratch)
        write_models(place / "seeds", [name for name in FORMATS if name in options.sorts.split(",")] or ["onnx"])
        write_models(place / "seeds", ["onnx", "outside.onnx"])
        write_data(place / "seeds")
        (place / "cases").mkdir()
        for number, name in enumerate(left):
            if number % _RENEWED == 0:
                stack.close()
                stack.enter_context(warm(place / f"warm-{number}", place / "cases"))
            with options.results.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps({'begun': name})}\n")
            faulthandler.dump_traceback_later(options.limit, exit=True)
            ended = carry_out(name, options.seed, place / "seeds", place / "cases" / str(number))
            faulthandler.cancel_dump_traceback_later()
            with options.results.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(dataclasses.asdict(ended))}\n")
            if ended.wrong:
                print(f"{name}: {ended.wrong} ({ended.code})\n{ended.words}\n", flush=True)
    return 0


def _settle(options: argparse.Namespace) -> None:
    """A case that was begun and hasn't ended has killed the process, or took too long."""
    lines = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    if lines and "begun" in lines[-1]:
        ended = Ended(lines[-1]["begun"], -1, options.limit, "killed the process, or took too long")
        with options.results.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(dataclasses.asdict(ended))}\n")
        print(f"{ended.name}: {ended.wrong}", flush=True)


def _read(path: Path) -> list[Ended]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Ended(**line) for line in lines if "begun" not in line]


def _left(names: list[str], path: Path) -> list[str]:
    done = {item.name for item in _read(path)}
    return [name for name in names if name not in done]


def _table(ended: list[Ended]) -> str:
    lines = ["| sort | cases | exit codes | wrong | slowest |", "|---|---|---|---|---|"]
    for sort in SORTS:
        of_it = [item for item in ended if item.name.partition(":")[0] == sort]
        if of_it:
            codes = ", ".join(
                f"{code}: {count}" for code, count in sorted(Counter(item.code for item in of_it).items())
            )
            wrong = Counter(item.wrong for item in of_it if item.wrong)
            shown = ", ".join(f"{count} {what}" for what, count in wrong.items()) or "0"
            lines.append(
                f"| {sort} | {len(of_it)} | {codes} | {shown} | {max(item.seconds for item in of_it):.1f} s |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
