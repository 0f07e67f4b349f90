"""A campaign on two Dask workers against two processes of this machine, by turns, as a person starts them.

`python -m benchmarks.crowd.ratio --networks 200 --times 2`
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.crowd.loopback import loopback
from conrepair.ground.runtime.errors import ExitCode
from conrepair_crowd.cluster import Cluster
from conrepair_lab.campaigns.fuzzing import FINDINGS

_PORT, _WORKERS = 8803, 2
_SYSTEMS = "ort-all,convert-onnxslim"
_HERE, _DASK = "here", "dask"


def main() -> None:
    """Print what was measured, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=200)
    parser.add_argument("--times", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(_measured(asked.networks, asked.times, Path(name)), indent=2))


def _measured(networks: int, times: int, room: Path) -> dict[str, Any]:
    runs: list[dict[str, Any]] = []
    with loopback(room, _PORT, workers=_WORKERS, preloads=("conrepair_crowd.worker",)) as (address, _):
        with Cluster(address) as cluster:
            while len(cluster.workers) < _WORKERS:
                time.sleep(0.5)
        crowd = ["--engine", _DASK, "--scheduler", address, "--exchange", str(room / "exchange")]
        for number in range(times):
            for engine, more in ((_HERE, ["--workers", str(_WORKERS)]), (_DASK, crowd)):
                runs.append(_run(engine, networks, number, [*more], room))
    medians = {
        name: statistics.median(run["seconds"] for run in runs if run["engine"] == name) for name in (_HERE, _DASK)
    }
    found = {name: {tuple(run["findings"]) for run in runs if run["engine"] == name} for name in (_HERE, _DASK)}
    return {
        "networks": networks,
        "systems": _SYSTEMS,
        "runs": runs,
        "the same findings": found[_HERE] == found[_DASK],
        "times as long": round(medians[_DASK] / medians[_HERE], 3),
    }


def _run(engine: str, networks: int, number: int, more: list[str], room: Path) -> dict[str, Any]:
    root = room / f"{engine}-{number}"
    words = ["fuzz", "--systems", _SYSTEMS, "--count", str(networks), "--alone", "0", "--seed", "11", "-q"]
    words += ["-o", str(root), *more]
    load, begun = os.getloadavg()[0], time.monotonic()
    done = subprocess.run([sys.executable, "-m", "conrepair", *words], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if done.returncode not in {ExitCode.EQUIVALENT, ExitCode.DIFFERENT}:
        raise RuntimeError(done.stderr)
    findings = sorted(path.name for path in (root / FINDINGS).glob("*")) if (root / FINDINGS).is_dir() else []
    return {
        "engine": engine,
        "seconds": round(seconds, 1),
        "load before and behind": [round(load, 1), round(os.getloadavg()[0], 1)],
        "findings": findings,
    }


if __name__ == "__main__":
    main()
