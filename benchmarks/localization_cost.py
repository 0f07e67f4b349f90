"""What localization costs, against running both models once with all their layers captured.

    python -m benchmarks.localization_cost [--repeats 3] [--photos 20] [--json]

- Seconds: MobileNetV2 as ONNX against its TFLite conversion, on photos. The plain run loads both models, asks ONNX
  Runtime for every tensor (all added as outputs) and LiteRT for every tensor (it keeps all), in the same batches, and
  keeps nothing. Both are measured in turns in one process. Target: at most 3 times as long.
- Memory: ResNet101 as ONNX with BatchNorm folded against not folded, at a batch of 16. The peak of the process's own
  memory (RssAnon, sampled) above what it held before, against the source's file and its two largest activations.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.jobs import JOBS
from benchmarks.common.making import FOLDED, KEPT
from benchmarks.common.running import result_of
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import open_network
from conrepair.ground.data.feeds import DataReference, batches, open_feeds
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.processes.workers import Workers
from conrepair.ground.runtime.typed import typed

TARGET = 3.0
_FAST, _LARGE = "mobilenet-v2", "resnet101"
_ROUTE = ("onnx-keras", "keras-tflite")
_BATCH, _LARGE_BATCH = 4, 16
_SAMPLE_SECONDS = 0.002


def main() -> int:
    """Measure and print; returns 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch:
        folder = Path(scratch)
        with Workers(1, jobs=JOBS) as workers:
            payload = _photo_models(folder / "fast", options.photos, workers)
            seconds = _call(workers, "time_both", payload | {"repeats": options.repeats}, folder / "timed")
        with Workers(1, jobs=JOBS) as workers:
            made = _make(workers, _LARGE, _LARGE_BATCH, folder / "large")
        with Workers(1, jobs=JOBS) as workers:  # whose memory holds nothing of how the models were made
            payload = {"source": made["sides"][FOLDED], "target": made["sides"][KEPT], "data": made["data"]}
            memory = _call(workers, "measure_memory", payload, folder / "measured")
    if options.json:
        print(json.dumps({"seconds": seconds, "memory": memory}, indent=2))
    else:
        _print(seconds, memory)
    return int(seconds["ratio"] > TARGET or memory["peak"] > memory["allowed"])


def _print(seconds: Mapping[str, Any], memory: Mapping[str, Any]) -> None:
    mib = {name: value / 2**20 for name, value in {**memory, **memory["parts"]}.items() if name != "parts"}
    print(f"{seconds['samples']} photos: plain run {seconds['plain']:.2f} s ({seconds['plain_tensors']} tensors)")
    parts = ", ".join(f"{name} {value:.2f}" for name, value in seconds["parts"].items())
    print(f"localization {seconds['localization']:.2f} s ({parts}): ratio {seconds['ratio']:.2f} (target {TARGET:g})")
    print(f"memory: peak {mib['peak']:.0f} MiB above {mib['before']:.0f} MiB before")
    print("while " + ", ".join(f"{name} {mib[name]:.0f}" for name in memory["parts"]))
    print(f"allowed: {mib['model']:.0f} MiB (model) + {mib['activations']:.0f} MiB (two largest activations)")
    print(f"all activations of the source together: {mib['all_activations']:.0f} MiB")


def _photo_models(folder: Path, photos: int, workers: Workers) -> dict[str, Any]:
    made = _make(workers, _FAST, photos, folder)
    side = made["sides"][FOLDED]
    for place, name in enumerate(_ROUTE):
        payload = {"side": side, "converter": name, "options": {}}
        side = result_of(workers, "benchmarks.common.making:convert", payload, folder / f"step-{place}")["side"]
    return {"source": made["sides"][FOLDED], "target": side, "data": made["data"]}


def _make(workers: Workers, name: str, samples: int, folder: Path) -> dict[str, Any]:
    payload = {"model": name, "samples": samples}
    return result_of(workers, "benchmarks.common.making:make", payload, folder / "made")


def _call(workers: Workers, name: str, payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    return result_of(workers, f"benchmarks.localization_cost:{name}", payload, folder)


# --- in the worker ----------------------------------------------------------------------------------------


def time_both(folder: Path, **payload: Any) -> dict[str, Any]:
    """Localize and run plainly, in turns."""
    plain, localization, parts = [], [], {}
    tensors = 0
    for repeat in range(payload["repeats"] + 1):
        started = time.perf_counter()
        tensors = _plain_run(payload, folder / f"captured-{repeat}.onnx")
        plain.append(time.perf_counter() - started)
        started = time.perf_counter()
        parts = _localize(payload, folder, _BATCH)
        localization.append(time.perf_counter() - started)
    ratios = [ours / theirs for ours, theirs in zip(localization[1:], plain[1:], strict=True)]  # the first warms up
    return {
        "plain": statistics.median(plain[1:]),
        "plain_tensors": tensors,
        "localization": statistics.median(localization[1:]),
        "parts": parts,
        "ratio": statistics.median(ratios),
        "samples": _count(payload["data"]),
    }


def measure_memory(folder: Path, **payload: Any) -> dict[str, Any]:
    """The peak of one localization's memory, in bytes."""
    source = payload["source"]
    inputs = [_with_batch(spec, _LARGE_BATCH) for spec in _inputs(source)]
    graph = open_network(typed(Model, source["model"]), inputs).graph
    sizes = sorted((tensor.nbytes or 0 for name, tensor in graph.tensors.items() if name in graph.producers))
    before = _own_memory()
    with _Peaks() as peaks:
        _localize(payload, folder, _LARGE_BATCH, peaks.begin)
    parts = {name: value - before for name, value in peaks.found.items()}
    model = Path(source["model"]["path"]).stat().st_size
    activations = sum(sizes[-2:])
    return {
        "before": before,
        "peak": max(parts.values()),
        "parts": parts,
        "model": model,
        "activations": activations,
        "allowed": model + activations,
        "all_activations": sum(sizes),
    }


def _localize(
    payload: Mapping[str, Any], folder: Path, batch: int, advance: Callable[[str], None] = lambda _: None
) -> dict[str, float]:
    from conrepair.diagnosis.localization.models import localize_models
    from conrepair.diagnosis.localization.options import Options
    from conrepair.diagnosis.localization.run.fed_model import FedModel

    data = _reference(payload["data"])
    source, target = (
        FedModel(typed(Model, side["model"]), tuple(_inputs(side)), data, None)
        for side in (payload["source"], payload["target"])
    )
    options = Options(samples=data.count, batch_size=batch)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:  # what stayed there would be written to disk meanwhile
        result = localize_models(source, target, Path(scratch), options, advance=advance)
    if result.faults:
        raise RuntimeError(f"the conversion isn't correct: {result.reason}")
    return dict(result.seconds)


def _plain_run(payload: Mapping[str, Any], path: Path) -> int:
    """Load both models and compute all their tensors; says how many."""
    return _run_onnx(payload["source"], payload["data"], path) + _run_tflite(payload["target"], payload["data"])


def _run_onnx(side: Mapping[str, Any], data: str, path: Path) -> int:
    import onnx
    import onnxruntime

    model = onnx.load(side["model"]["path"])
    known = {value.name for value in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name and name not in known]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    onnx.save(model, path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    for feeds in _batches(side, data):
        session.run(None, feeds)
    return len(session.get_outputs())


def _run_tflite(side: Mapping[str, Any], data: str) -> int:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        side["model"]["path"],
        num_threads=os.cpu_count(),
        # The default delegate computes several layers at once, and what lies between them isn't there.
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
    )
    shape, kept = None, 0
    for feeds in _batches(side, data):
        array = next(iter(feeds.values()))
        (entry,) = interpreter.get_input_details()
        if array.shape != shape:
            interpreter.resize_tensor_input(entry["index"], array.shape)
            interpreter.allocate_tensors()
            shape = array.shape
        interpreter.set_tensor(entry["index"], array)
        interpreter.invoke()
        kept = sum(_read(interpreter, tensor["index"]) for tensor in interpreter.get_tensor_details())
    return kept


def _read(interpreter: Any, index: int) -> bool:
    try:
        interpreter.get_tensor(index)
    except ValueError:  # memory that a kernel works in holds no data afterwards
        return False
    return True


def _batches(side: Mapping[str, Any], data: str) -> Any:
    inputs = _inputs(side)
    for batch in batches(open_feeds(_reference(data), inputs, None), inputs, _BATCH):
        yield batch.feeds


def _reference(data: str) -> DataReference:
    return DataReference("tensors", _count(data), data, sha256_of(Path(data)))


def _count(data: str) -> int:
    with np.load(data) as arrays:
        return len(next(iter(arrays.values())))


def _inputs(side: Mapping[str, Any]) -> list[TensorSpec]:
    return [typed(TensorSpec, spec) for spec in side["inputs"]]


def _with_batch(spec: TensorSpec, size: int) -> TensorSpec:
    return dataclasses.replace(spec, shape=(size, *spec.shape[1:]))


class _Peaks:
    """Largest RssAnon of each part of a work: what's mapped from files can be dropped, and doesn't count.

    Attributes:
        found: Bytes by the parts' names.
    """

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self._part = "beginning"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)

    def __enter__(self) -> _Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def begin(self, part: str) -> None:
        """What's seen from now on belongs to that part."""
        self._part = part

    def _watch(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            self.found[self._part] = max(self.found.get(self._part, 0), _own_memory())


def _own_memory() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return int(status["RssAnon"].split()[0]) << 10


if __name__ == "__main__":
    sys.exit(main())
