"""What compiled MobileNetV2 costs at batch 1: around it, under each setting, and against ONNX Runtime.

    python -m benchmarks.tvm_cost [--rounds 30] [--target llvm] [--json]

Everything is timed in turns in one process, on one photo-sized input:

- bare: TVM's virtual machine called with a tensor that is where it shall be; its output stays there.
- ours: `Runnable.run`, from a NumPy array to NumPy arrays: checks, the copies in and out, names.
- onnxruntime: the same ONNX file with all graph optimizations and its own choice of threads.

Overhead is (ours - bare) / bare of neighbouring calls, the median over rounds. Targets: overhead below 5 %, and O3 at
least 3 times as fast as O1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.jobs import JOBS
from benchmarks.throughput import mobilenets, worker_value
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.processes.workers import Workers
from conrepair.ground.runtime.typed import typed

OVERHEAD_TARGET, SPEED_TARGET = 0.05, 3.0
TARGETS = ("llvm", "llvm -mcpu=native")
SETTINGS = ("O1", "O3")
_RUNTIME = "onnxruntime"
_TIMEOUT = 3600.0
_QUANTILES = (0.05, 0.95)


def main() -> int:
    """Measure and print; returns 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--target", action="append", help="may be repeated; default: " + ", ".join(TARGETS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch, Workers(1, jobs=JOBS) as workers:
        room = Path(scratch)
        payload = {"model": asdict(mobilenets(room, workers)["onnxruntime"]), "rounds": options.rounds}
        payload["targets"] = options.target or TARGETS
        before = os.getloadavg()[0]
        value = worker_value(workers, "benchmarks.tvm_cost:measure", payload, room / "cost", _TIMEOUT)
    result = _summary(value) | {"load": [before, os.getloadavg()[0]], "cores": os.cpu_count()}
    _print(result, as_json=options.json)
    missed = [row["overhead"] > OVERHEAD_TARGET for row in result["builds"]]
    return int(any(missed) or any(ratio < SPEED_TARGET for ratio in result["o3_against_o1"].values()))


def measure(folder: Path, **payload: Any) -> dict[str, Any]:
    """In a worker: build, then call everything in turns.

    Args:
        payload: "model" (ONNX), "rounds", "targets".
        folder: For the builds.

    Returns:
        "seconds" (of each call, by build and side), "errors" (relative, against ONNX Runtime).
    """
    model = typed(Model, payload["model"])
    image = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    calls: dict[str, Callable[[], Any]] = {_RUNTIME: _onnxruntime(model, image)}
    expected, errors = calls[_RUNTIME](), {}
    for target in payload["targets"]:
        for setting in SETTINGS:
            place = folder / f"{target} {setting}"
            place.mkdir()
            bare, ours = _compiled(model, image, {"target": target, "setting": setting}, place)
            calls |= {f"{place.name}, bare": bare, f"{place.name}, ours": ours}
            errors[place.name] = float(np.linalg.norm(ours() - expected) / np.linalg.norm(expected))
    for call in calls.values():  # warm
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(payload["rounds"]):
        # Back and forth, as a call finds its weights in the cache that the one before it has used.
        for name, call in list(calls.items())[:: 1 if number % 2 else -1]:
            started = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - started)
    return {"seconds": seconds, "errors": errors, "targets": payload["targets"]}


def _onnxruntime(model: Model, image: Any) -> Callable[[], Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: image})[0]


def _compiled(
    model: Model, image: Any, options: dict[str, Any], folder: Path
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import tvm
    from tvm import relax

    from conrepair.formats.tvm.backend import BACKEND

    record = BACKEND.compile(model, options, 1, folder)
    module = tvm.runtime.load_module(str(folder / record["library"]))
    machine = relax.VirtualMachine(module, tvm.cpu())
    tensor, function = tvm.runtime.tensor(image), machine["main"]
    runnable = BACKEND.load(model, options | {"build": {"path": str(folder)}})
    name, output = runnable.inputs[0].name, runnable.outputs[0].name
    return lambda: function(tensor), lambda: runnable.run({name: image})[output]


def _summary(value: dict[str, Any]) -> dict[str, Any]:
    seconds = {name: np.array(times) for name, times in value["seconds"].items()}
    runtime = statistics.median(seconds[_RUNTIME])
    builds = []
    for name, error in value["errors"].items():
        bare, ours = seconds[f"{name}, bare"], seconds[f"{name}, ours"]
        low, high = np.quantile(bare, _QUANTILES)
        builds.append(
            {
                "build": name,
                "bare_ms": 1000 * statistics.median(bare),
                "bare_ms_range": [1000 * low, 1000 * high],
                "ours_ms": 1000 * statistics.median(ours),
                "overhead": float(np.median((ours - bare) / bare)),
                "times_onnxruntime": statistics.median(bare) / runtime,
                "relative_error": error,
            }
        )
    medians = {row["build"]: row["bare_ms"] for row in builds}
    return {
        "onnxruntime_ms": 1000 * runtime,
        "builds": builds,
        "o3_against_o1": {target: medians[f"{target} O1"] / medians[f"{target} O3"] for target in value["targets"]},
        "rounds": len(seconds[_RUNTIME]),
    }


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
        return
    before, after = result["load"]
    print(f"{result['rounds']} rounds, load {before:.1f} before and {after:.1f} after, on {result['cores']} cores")
    print(f"onnxruntime             {result['onnxruntime_ms']:7.1f} ms")
    for row in result["builds"]:
        low, high = row["bare_ms_range"]
        print(
            f"{row['build']:22}  {row['bare_ms']:7.1f} ms ({low:.1f}-{high:.1f}), ours {row['ours_ms']:.1f} ms, "
            f"overhead {row['overhead']:+.1%}, {row['times_onnxruntime']:.1f} x onnxruntime, "
            f"error {row['relative_error']:.1e}"
        )
    for target, ratio in result["o3_against_o1"].items():
        print(f"{target}: O3 is {ratio:.1f} times as fast as O1")


if __name__ == "__main__":
    sys.exit(main())
