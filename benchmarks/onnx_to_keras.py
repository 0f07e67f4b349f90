"""ONNX to Keras, on ONNX models of different origins.

    python -m benchmarks.onnx_to_keras [-o FILE] [NAME ...]

Each conversion is a job in a worker process, as in an audit; then what came out runs on a batch of 4 beside ONNX
Runtime (optimizations disabled).
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.common.jobs import JOBS
from benchmarks.common.measured import made_by
from benchmarks.onnx_models import Origin, made, origins
from conrepair.application.jobs.values import ConversionStep
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.builders import calibration_inputs
from conrepair.formats.models.model import Model
from conrepair.ground.data.binding import bind_inputs
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.processes.workers import Failure, Job, Success, Workers
from conrepair.ground.runtime.typed import typed
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

Array = npt.NDArray[Any]

_BATCH = 4
_REPEATS = 7
_TIMEOUT = 300.0
_PIXELS = 127.5, 60.0  # middle and spread
_RIGHT = 1e-3  # relative L2 below which a result counts as right
_WORDS = 160  # characters of a failure


@dataclass(frozen=True)
class Row:
    """One conversion: `figures` are those of `measure`, None where there is nothing to measure."""

    model: str
    seconds: float | None
    figures: Mapping[str, float] | None
    failure: str = ""


def main() -> int:
    """Run and print; returns 1 when our importer fails or isn't right on a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only models whose name contains one of these")
    parser.add_argument("-o", "--output", type=Path, help="write the table there (docs/measured/onnx-to-keras.md)")
    options = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch, Workers(1, jobs=JOBS) as workers:
        for number, origin in enumerate(origins()):
            title = f"{origin.name}, {' > '.join(origin.via)}"
            if options.names and not any(name in title for name in options.names):
                continue
            rows.append(_row(title, origin, Path(scratch) / str(number), workers))
            print(rows[-1], file=sys.stderr, flush=True)
    text = table(rows)
    if options.output:
        head = f"# ONNX to Keras\n\n{made_by('python -m benchmarks.onnx_to_keras')}\n\n"
        options.output.write_text(head + text, encoding="utf-8")
    print(text)
    return int(not all(map(_right, rows)))


def _row(title: str, origin: Origin, folder: Path, workers: Workers) -> Row:
    model, about = made(origin, folder / "onnx", workers)
    step = converter("onnx-keras")
    told = {"model": model, "step": ConversionStep.of(step, step.complete({})), "inputs": about.inputs}
    outcome = _call("conrepair.application.jobs.conversion:convert", told, folder / "keras", workers)
    if isinstance(outcome, Failure):
        return Row(title, None, None, _first_line(outcome))
    made_model = outcome.value["model"]
    payload = {"model": asdict(model), "inputs": asdict(about)["inputs"], "pixels": origin.pixels}
    payload |= {"file": str(folder / "keras" / made_model["path"])}
    measured = _call("benchmarks.onnx_to_keras:measure", payload, folder / "measured", workers)
    seconds = made_model["provenance"]["seconds"]
    if isinstance(measured, Failure):
        return Row(title, seconds, None, _first_line(measured))
    return Row(title, seconds, measured.value)


def _call(function: str, payload: dict[str, Any], folder: Path, workers: Workers) -> Success | Failure:
    folder.mkdir(parents=True)
    return workers.call(Job(function, payload, folder, frozenset({"tensorflow"}), _TIMEOUT))


def _first_line(failure: Failure) -> str:
    text = re.sub(r"\S*/conrepair-benchmark-\S*/", "", next(iter(str(failure).splitlines()), ""))
    return text if len(text) <= _WORDS else text[: _WORDS - 3] + "..."


# --- in the worker ----------------------------------------------------------------------------------------


def measure(**payload: Any) -> dict[str, Any]:
    """Compare a Keras model with the ONNX model that it was made from.

    Args:
        payload: "model" (ONNX), "inputs" (its specs), "pixels", and "file" (the .keras file).

    Returns:
        "error" (relative L2, the largest of all outputs), "ratio" (of the seconds of a batch), "transposes" in the
        TensorFlow graph.
    """
    from conrepair.formats.keras.load.framework import load_keras, spec_of
    from conrepair.formats.onnx.load.framework import OnnxRunnable

    source = typed(Model, payload["model"])
    specs = tuple(typed(TensorSpec, spec) for spec in payload["inputs"])
    network = load_keras(Model("keras", payload["file"], ""))
    feeds = {spec.name: _drawn(spec, payload["pixels"]) for spec in specs}
    arrays = []
    for binding, tensor in zip(bind_inputs(specs, [spec_of(t) for t in network.inputs]), network.inputs, strict=True):
        array = feeds[binding.sample]
        turned = array if binding.permutation is None else array.transpose(binding.permutation)
        arrays.append(np.ascontiguousarray(turned).astype(tensor.dtype))
    session = OnnxRunnable(source)
    reference, candidate = lambda: session.run(feeds), _prediction(network, arrays)
    error = _error(reference(), candidate())
    own, other = (_fastest(call) for call in (reference, candidate))
    return {
        "error": error,
        "ratio": other / own,
        "transposes": _transposes(network, arrays),
    }


def _drawn(spec: TensorSpec, pixels: bool) -> Array:
    shape = (_BATCH, *(size if isinstance(size, int) else _BATCH for size in spec.shape[1:]))
    array = calibration_inputs(dataclasses.replace(spec, shape=shape), 1)
    middle, spread = _PIXELS
    return np.clip(middle + spread * array, 0, 255).astype(np.float32) if pixels else array


def _prediction(network: Any, arrays: list[Array]) -> Callable[[], dict[str, Array]]:
    import keras

    def predict() -> dict[str, Array]:
        result = network.predict_on_batch(arrays if len(arrays) > 1 else arrays[0])
        return {f"output {index}": np.asarray(leaf) for index, leaf in enumerate(keras.tree.flatten(result))}

    return predict


def _error(expected: Mapping[str, Array], given: Mapping[str, Array]) -> float:
    pairs, unpaired = pair_outputs(expected, given)
    if unpaired:
        raise InferenceError(f"its outputs are others: {unpaired[0]}.")
    errors = []
    for pair in pairs:
        one, two = fit(pair, expected[pair.reference], given[pair.candidate])
        if not np.isfinite(two).all():
            raise InferenceError("its outputs are not finite.")
        errors.append(compare_tensors(one, two, rtol=0, atol=0).relative_l2)
    return float(max(errors))


def _fastest(call: Callable[[], Any]) -> float:
    """The shortest of some calls: other programs make calls longer, never shorter."""
    call()
    seconds = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _transposes(network: Any, arrays: list[Array]) -> int:
    """Transpose operations in the TensorFlow graph: those within layers too."""
    import tensorflow as tf

    specs = [tf.TensorSpec([None, *array.shape[1:]], array.dtype) for array in arrays]
    function = tf.function(lambda *tensors: network(list(tensors) if len(tensors) > 1 else tensors[0]))
    graph = function.get_concrete_function(*specs).graph.as_graph_def()
    nodes = [*graph.node, *(node for item in graph.library.function for node in item.node_def)]
    return sum(node.op == "Transpose" for node in nodes)


# --- the table --------------------------------------------------------------------------------------------


def _right(row: Row) -> bool:
    return row.figures is not None and row.figures["error"] < _RIGHT


def table(rows: list[Row]) -> str:
    """How many are right, then all rows, as Markdown."""
    lines = [f"{sum(map(_right, rows))} of {len(rows)} are right (error below 1e-3), in a file that loads.", ""]
    lines += ["| model | error | seconds | Transpose | time / ONNX Runtime | failure |", "|---|---|---|---|---|---|"]
    lines += [f"| {row.model} | {' | '.join(_cells(row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
    if row.figures is None:
        return ["", seconds, "", "", row.failure.replace("|", "/")]
    figures = row.figures
    return [f"{figures['error']:.0e}", seconds, f"{figures['transposes']:.0f}", f"{figures['ratio']:.1f}", ""]


if __name__ == "__main__":
    sys.exit(main())
