"""What whole commands cost, beside polygraphy comparing the same two files with all layers as outputs.

    python -m benchmarks.verbs_cost --polygraphy PATH [--rounds 5] [--json]

MobileNetV2 as ONNX against itself with one convolution padded otherwise: as ONNX, TFLite and a PyTorch program.
Polygraphy runs the source and saves what every layer gives, then the ONNX target and compares; both runs together
are 1.0. It isn't among the requirements: give the program of an environment of its own (pip install polygraphy
onnxruntime onnx). Commands and polygraphy run in turns, from start to end, with cold processes and warm file caches;
the fastest round counts, as anything else that runs makes them slower and nothing makes them faster.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SOURCE, WRONG = "source.onnx", "wrong"
_CASES = (  # verb, target, what's wanted: seconds of `inspect`, else against polygraphy
    ("inspect", "", 0.7),
    ("compare", ".onnx", 0.25),
    ("localize", ".onnx", 0.5),
    ("repair", ".onnx", 0.9),
    ("localize", ".tflite", 1.6),
    ("repair", ".tflite", 3.0),
    ("localize", ".pt2", 1.6),
    ("repair", ".pt2", 3.0),
)
_STRIDED = 2  # which of the convolutions of stride 2 is padded otherwise
_PADS = (0, 0, 2, 2)
_DONE = (0, 1)  # exit codes of verbs and polygraphy that did what was asked for


@dataclass(frozen=True)
class Cost:
    """Of a command, or of two.

    Attributes:
        wall: Seconds.
        cpu: Seconds of all its processes.
    """

    wall: float
    cpu: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu)


def main() -> int:
    """Measure and print; returns 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polygraphy", help="Its program.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--make", metavar="FOLDER", help="Only make the models, in this process.")
    options = parser.parse_args()
    if options.make:
        make_models(Path(options.make))
        return 0
    if not options.polygraphy:
        parser.error("give --polygraphy")
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch:
        folder = Path(scratch)
        subprocess.run([sys.executable, "-m", "benchmarks.verbs_cost", "--make", scratch], check=True)
        peer: list[Cost] = []
        costs: dict[tuple[str, str], list[Cost]] = {case[:2]: [] for case in _CASES}
        for _ in range(options.rounds):
            peer.append(_polygraphy(options.polygraphy, folder))
            for verb, suffix, _ in _CASES:
                costs[verb, suffix].append(_verb(verb, suffix, folder))
    rows = [_row(case, costs[case[:2]], peer) for case in _CASES]
    if options.json:
        print(json.dumps({"polygraphy": vars(_least(peer)), "rows": rows}, indent=2))
    else:
        _print(rows, _least(peer))
    return int(any(row["missed"] for row in rows))


def make_models(folder: Path) -> None:
    """Write the source, and the wrong target in each format.

    Args:
        folder: Receives `source.onnx` and `wrong.onnx`, `.tflite` and `.pt2`.
    """
    from benchmarks.common.making import convert

    side = make_pair(folder)
    for place, step in enumerate(("onnx-keras", "keras-tflite")):
        (folder / str(place)).mkdir()
        side = convert(folder / str(place), side=side, converter=step, options={})["side"]
    shutil.copy(side["model"]["path"], folder / f"{WRONG}.tflite")
    _export_program(folder)


def make_pair(folder: Path) -> dict[str, Any]:
    """Write the source and the wrong target as ONNX.

    Args:
        folder: Receives `source.onnx` and `wrong.onnx`.

    Returns:
        The target, for further conversions.
    """
    import onnx

    from benchmarks.common.making import FOLDED, make
    from conrepair.formats.models.model import Model
    from conrepair.ground.runtime.files.whole import sha256_of

    (folder / "made").mkdir()
    side = make(folder / "made", model="mobilenet-v2", samples=4)["sides"][FOLDED]
    shutil.copy(side["model"]["path"], folder / SOURCE)
    model = onnx.load(folder / SOURCE)
    strided = [node for node in model.graph.node if node.op_type == "Conv" and _attribute(node, "strides") == [2, 2]]
    pads = next(item for item in strided[_STRIDED].attribute if item.name == "pads")
    pads.ints[:] = _PADS
    wrong = folder / f"{WRONG}.onnx"
    onnx.save(model, wrong)
    return {**side, "model": asdict(Model("onnx", str(wrong), sha256_of(wrong)))}


def _export_program(folder: Path) -> None:
    """The same fault in PyTorch: the convolution pads nothing, and what's put in front of it on one side only."""
    import torch
    import torchvision

    net = torchvision.models.mobilenet_v2()
    net.load_state_dict(torch.load(folder / "made" / "torch" / "weights.pt", weights_only=True))
    net.eval()
    strided = [
        (name, item)
        for name, item in net.named_modules()
        if isinstance(item, torch.nn.Conv2d) and item.stride == (2, 2)
    ]
    name, convolution = strided[_STRIDED]
    convolution.padding = (0, 0)
    parent, _, own = name.rpartition(".")
    setattr(net.get_submodule(parent), own, torch.nn.Sequential(torch.nn.ZeroPad2d((0, 2, 0, 2)), convolution))
    batch = {0: torch.export.Dim("batch")}
    program = torch.export.export(net, (torch.zeros(2, 3, 224, 224),), dynamic_shapes=(batch,))
    torch.export.save(program, folder / f"{WRONG}.pt2")


def _attribute(node: Any, name: str) -> list[int]:
    return next((list(item.ints) for item in node.attribute if item.name == name), [])


def _polygraphy(program: str, folder: Path) -> Cost:
    run = [program, "run"]
    options = ["--onnxrt", "--onnx-outputs", "mark", "all", "--input-shapes", "x:[4,3,224,224]"]
    saved = str(folder / "outputs.json")
    first = _timed([*run, str(folder / SOURCE), *options, "--save-outputs", saved])
    return first + _timed([*run, str(folder / f"{WRONG}.onnx"), *options, "--load-outputs", saved])


def _verb(verb: str, suffix: str, folder: Path) -> Cost:
    words = [sys.executable, "-m", "conrepair", verb, str(folder / SOURCE)]
    words += [str(folder / f"{WRONG}{suffix}")] if suffix else []
    words.append("-q")
    if verb != "inspect":
        shutil.rmtree(folder / "out", ignore_errors=True)
        words += ["-o", str(folder / "out")]
    return _timed(words)


def _timed(words: Sequence[str]) -> Cost:
    """Run a command to its end.

    Raises:
        RuntimeError: if it didn't do what was asked for.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in _DONE:
        raise RuntimeError(f"{words} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _least(costs: Sequence[Cost]) -> Cost:
    return Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))


def _row(case: tuple[str, str, float], costs: Sequence[Cost], peer: Sequence[Cost]) -> dict[str, Any]:
    verb, suffix, wanted = case
    own, other = _least(costs), _least(peer)
    ratio = own.wall / other.wall
    return {
        "command": f"{verb} {suffix}".strip(),
        "wall": own.wall,
        "cpu": own.cpu,
        "ratio": ratio,
        "cpu_ratio": own.cpu / other.cpu,
        "wanted": wanted,
        "missed": (ratio if suffix else own.wall) > wanted,
    }


def _print(rows: Sequence[dict[str, Any]], peer: Cost) -> None:
    print("| command | wall, s | CPU, s | wall / polygraphy | CPU / polygraphy | wanted |")
    print("|---|---:|---:|---:|---:|---:|")
    print(f"| polygraphy, both files | {peer.wall:.2f} | {peer.cpu:.2f} | 1 | 1 | |")
    for row in rows:
        unit = " s" if row["command"] == "inspect" else ""
        print(
            f"| {row['command']} | {row['wall']:.2f} | {row['cpu']:.2f} | {row['ratio']:.2f} "
            f"| {row['cpu_ratio']:.2f} | {row['wanted']:g}{unit} |"
        )


if __name__ == "__main__":
    sys.exit(main())
