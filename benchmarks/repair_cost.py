"""What a repair costs: MobileNetV2 with one fault, localized, repaired and verified on photos.

    python -m benchmarks.repair_cost [--fault weights-scaled] [--photos 100] [--seed 11] [--json]

The source is ONNX with BatchNorm folded; the targets are the same file, and its TFLite conversion, each with the
fault. Eight photos localize, the others verify, as `conrepair repair` does. Measured in one process, whose first
localization, which imports the frameworks, doesn't count; and, with all its processes, the command. Targets: under
30 s, and less than 3 times the localization alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.jobs import JOBS
from benchmarks.common.making import FOLDED
from benchmarks.common.running import result_of
from benchmarks.common.target import Data, made_target, subject
from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.ground.runtime.processes.workers import Workers

SECONDS, RATIO = 30.0, 3.0
_MODEL = "mobilenet-v2"
_ROUTES = {"onnx": (), "tflite": ("onnx-keras", "keras-tflite")}
_LOCALIZED, _BATCH = 8, 4
_TIMEOUT = 1200.0


def main() -> int:
    """Measure and print; returns 1 when a target is missed, or the fault isn't repaired."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", default="weights-scaled", help="of the catalogue")
    parser.add_argument("--photos", type=int, default=100)
    parser.add_argument("--model", default=_MODEL, help="of the benchmark")
    parser.add_argument("--seed", type=int, default=11, help="of the fault's place")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch:
        costs = measure(options.model, options.fault, options.photos, options.seed, Path(scratch))
    if options.json:
        print(json.dumps(costs, indent=2))
    else:
        print("\n".join(_line(name, cost) for name, cost in costs.items()))
    return int(not all(_reached(cost) for cost in costs.values()))


def measure(model: str, fault: str, photos: int, seed: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Measure each target.

    Args:
        model: Of the benchmark.
        fault: Of the catalogue.
        photos: Or other samples, where the model takes none.
        seed: Of the fault's place.
        folder: For all files.

    Returns:
        By the target's format, what `time_repair` says.

    Raises:
        RuntimeError: if a model can't be made, or a repair fails.
    """
    with Workers(1, jobs=JOBS) as workers:
        made = result_of(
            workers, "benchmarks.common.making:make", {"model": model, "samples": photos}, folder / "made"
        )
        bases = {}
        for name, route in _ROUTES.items():
            side = made["sides"][FOLDED]
            for place, step in enumerate(route):
                payload = {"side": side, "converter": step, "options": {}}
                work = folder / f"{name}-{place}"
                side = result_of(workers, "benchmarks.common.making:convert", payload, work)["side"]
            bases[name] = side
    costs = {}
    for name, base in bases.items():
        payload = {
            "source": made["sides"][FOLDED],
            "base": base,
            "data": made["data"],
            "faults": [fault],
            "count": 1,
            "seed": seed,
            "rewriting": "",
            "route": [],
            "agree": True,
        }
        with Workers(1, jobs=JOBS) as workers:  # that has made no models
            costs[name] = result_of(workers, "benchmarks.repair_cost:time_repair", payload, folder / f"timed-{name}")
    return costs


def _reached(cost: Mapping[str, Any]) -> bool:
    return bool(cost["mended"] and cost["repair"] < SECONDS and cost["ratio"] < RATIO)


def _line(name: str, cost: Mapping[str, Any]) -> str:
    result = "repaired" if cost["mended"] else "NOT REPAIRED"
    return (
        f"{name}: {result}, {cost['fault']}; repair {cost['repair']:.1f} s (wanted: under {SECONDS:g}), localization "
        f"alone {cost['localization']:.1f} s, ratio {cost['ratio']:.2f} (wanted: under {RATIO:g}); "
        f"{cost['tried']} candidates; {cost['verified']} photos verify, {cost['differing']} answers differ; "
        f"the commands: repair {cost['repair_command']:.1f} s, localize {cost['localize_command']:.1f} s"
    )


# --- in the worker ----------------------------------------------------------------------------------------


def time_repair(folder: Path, **payload: Any) -> dict[str, Any]:
    """Localize twice, of which the second counts, and repair once; then ask the commands.

    Returns:
        "localization" and "repair" (seconds), their "ratio", "mended", "edits", "tried", "verified" (samples),
        "differing" (answers on them), "fault" (in words), "localize_command" and "repair_command" (seconds).
    """
    data = Data(payload["data"])
    made = made_target(payload, data, folder)
    source, target = (subject(side, data.reference) for side in (payload["source"], made.side))
    options = Options(samples=_LOCALIZED, batch_size=_BATCH)
    localization = 0.0
    for name in ("warming", "localization"):
        started = time.perf_counter()
        localize_models(source, target, folder / name, options)
        localization = time.perf_counter() - started
    unseen = data.reference.count - _LOCALIZED
    started = time.perf_counter()
    result = repair_models(source, target, folder / "repaired", RepairOptions(options, unseen=unseen))
    repair = time.perf_counter() - started
    paths = [side["model"]["path"] for side in (payload["source"], made.side)]
    commands = {
        f"{verb}_command": _command([verb, *paths, "--data", payload["data"], *more], folder / f"{verb}-command")
        for verb, more in (("localize", []), ("repair", ["--samples", str(data.reference.count)]))
    }
    return commands | {
        "fault": made.injected[0]["words"],
        "localization": localization,
        "repair": repair,
        "ratio": repair / localization,
        "mended": result.mended and result.unseen_after.top1_differing == 0,
        "edits": list(result.edits),
        "tried": result.tried,
        "verified": result.unseen_after.samples,
        "differing": result.unseen_after.top1_differing,
    }


def _command(arguments: list[str], out: Path) -> float:
    """Seconds that a command takes with all its processes."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "conrepair", *arguments, "-o", str(out)],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"conrepair {arguments[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
