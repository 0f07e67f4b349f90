"""Whether a trace reaches known numeric faults from default ranges: `python -m benchmarks.trace.known_faults`.

Each fault lies between two linear layers, and shows in a region of its argument alone. Three are rebuilt: a pass
writes an unstable form in place of an operator. Reached: judged wrong, with the guilty side named.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.parser import parse_function

from benchmarks.common.running import say
from benchmarks.trace.kept import Kept
from benchmarks.trace.networks import model_of
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array, Runnable
from conrepair_lab.jobs.trace_search import trace
from conrepair_lab.jobs.trace_values import Compared, Search
from conrepair_lab.systems.registry import SYSTEMS, entry
from conrepair_lab.systems.system import Setting, System
from conrepair_lab.tracing.result import Side

__all__ = ["FAULTS", "Fault", "reached", "written"]

_INPUTS, _INNER, _OUTPUTS = 8, 4, 3
_OPSETS = {"Mish": 18}
_NAIVE = "naive"
_FORMS = (
    "LayerNormalization (x, scale) => (y) { m = ReduceMean <axes = [-1]> (x) q = Mul (x, x) "
    "n = ReduceMean <axes = [-1]> (q) w = Mul (m, m) v = Sub (n, w) e = Constant <value_float = 1e-5> () "
    "u = Add (v, e) d = Sqrt (u) c = Sub (x, m) r = Div (c, d) y = Mul (r, scale) }",
    "ReduceLogSumExp (x) => (y) { e = Exp (x) s = ReduceSum <keepdims = 1> (e) y = Log (s) }",
    "Sinh (x) => (y) { p = Exp (x) n = Neg (x) q = Exp (n) d = Sub (p, q) h = Constant <value_float = 0.5> () "
    "y = Mul (d, h) }",
)
"""The variance by E[x2] - E[x]2, no largest taken out, a difference of numbers near one."""


@dataclass(frozen=True)
class Fault:
    """A known fault.

    Attributes:
        operator: Which computes wrongly.
        setting: Of which system.
        blamed: The guilty side: "both" where the same system without optimizations has the fault, too.
        gain: Standard deviation of weights in front of it, by which the region can be reached.
        mean: Of these weights.
    """

    operator: str
    setting: str
    blamed: str = "both"
    gain: float = 1.0
    mean: float = 0.0

    @property
    def name(self) -> str:
        """Of both."""
        return f"{self.setting} {self.operator}"


FAULTS = (
    *(Fault(name, "torch-compile", "setting") for name in ("Erf", "Atanh", "Elu", "Selu")),
    *(Fault(name, "tvm-O3") for name in ("Tanh", "Atanh", "Elu")),
    *(Fault(name, "tvm-O3", gain=3.0) for name in ("Softplus", "Mish")),
    Fault("Sigmoid", "ort-all", gain=3.0),
    Fault("Elu", "ort-all"),
    Fault("Exp", "tvm-fast", "setting", 4.0),
    Fault("LayerNormalization", _NAIVE, "setting", 0.01, 1.0),
    Fault("ReduceLogSumExp", _NAIVE, "setting", 5.0),
    Fault("Sinh", _NAIVE, "setting"),
)


class Naive(System):
    """ONNX Runtime behind a pass that writes unstable forms."""

    name = _NAIVE
    settings = MappingProxyType({"none": Setting("onnxruntime"), "forms": Setting("onnxruntime", {"forms": True})})
    plain, usual = "none", "forms"

    def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
        """See `System.open`."""
        if setting.options:
            model = model_of(_rebuilt(Path(model.path), folder))
        return SYSTEMS["ort"].open(model, entry("ort-none").chosen, folder)

    def program(self, setting: Setting) -> str:
        """It's only searched."""
        raise NotImplementedError


def _rebuilt(path: Path, folder: Path) -> Path:
    """Operators that have a form become functions, which ONNX Runtime puts in their place."""
    model = onnx.load(path)
    texts = [f'<domain: "{_NAIVE}", opset_import: ["": 17]> {text}' for text in _FORMS]
    model.functions.extend(map(parse_function, texts))
    model.opset_import.append(helper.make_opsetid(_NAIVE, 1))
    for node in model.graph.node:
        if node.op_type in {item.name for item in model.functions}:
            node.domain = _NAIVE
            del node.attribute[:]
    onnx.save(model, folder / "rebuilt.onnx")
    return folder / "rebuilt.onnx"


def written(fault: Fault, seed: int, path: Path) -> None:
    """Write a network: a linear layer, the operator at fault, a linear layer."""
    generator = np.random.default_rng([seed, *fault.name.encode()])
    inner = 1 if fault.operator.startswith("Reduce") else _INNER
    weights: dict[str, Array] = {
        "front": generator.normal(fault.mean, fault.gain, (_INPUTS, _INNER)),
        "behind": generator.normal(0, 1, (inner, _OUTPUTS)),
    }
    if fault.operator == "LayerNormalization":
        weights["scale"] = np.ones(_INNER)
    nodes = [
        helper.make_node("MatMul", ["x", "front"], ["inner"]),
        helper.make_node(fault.operator, ["inner", *list(weights)[2:]], ["outer"]),
        helper.make_node("MatMul", ["outer", "behind"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "fault",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, _INPUTS])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, _OUTPUTS])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    opset = helper.make_opsetid("", _OPSETS.get(fault.operator, 17))
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def reached(fault: Fault, seed: int, seconds: float, evaluations: int) -> dict[str, Any]:
    """What a trace with the default method comes to, from default ranges.

    Args:
        fault: Which.
        seed: Of the network, and of the search.
        seconds: For the search.
        evaluations: At most.
    """
    one = entry(fault.setting)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        written(fault, seed, folder / "model.onnx")
        sides = Compared(
            model=model_of(folder / "model.onnx"),
            one=Side(one.name, one.system, one.chosen),
            two=Side(one.plain.name, one.system, one.plain.chosen),
        )
        search = Search(
            method="mega",
            objective="guide",
            evaluations=evaluations,
            seconds=seconds,
            low=-5.0,
            high=5.0,
            seed=seed,
        )
        started = time.perf_counter()
        told = trace(folder, sides, search)
    worst = told.deviations[0]
    return {
        "kind": worst.kind,
        "blamed": worst.blamed,
        "reached": worst.kind == "wrong" and worst.blamed == fault.blamed,
        "over": max(side.over or 0.0 for side in (worst.framework, worst.total) if side),
        "searched": told.seconds,
        "seconds": time.perf_counter() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", nargs="+", metavar="WORD", default=[""], help="whose names hold one of these")
    parser.add_argument("--first", type=int, default=11, help="the first seed: 11 to develop, 90001 to report")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--folder", type=Path, required=True, help="for rows")
    asked = parser.parse_args()
    SYSTEMS[_NAIVE] = Naive()
    command = "python -m benchmarks.trace.known_faults"
    kept = Kept(asked.folder / f"known-faults-{asked.first}.jsonl", command)
    for fault in FAULTS:
        for seed in range(asked.first, asked.first + asked.seeds):
            about = {"fault": fault.name, "seed": seed}
            if any(word in fault.name for word in asked.faults) and not kept.known(**about):
                kept.add([{**about, **reached(fault, seed, asked.seconds, asked.evaluations)}])
                say(str(kept.rows[-1]))


if __name__ == "__main__":
    main()
