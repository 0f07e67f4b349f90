"""Passes that are wrong under a condition: how many a campaign finds, and whether it's reduced to the condition.

    python -m benchmarks.fuzz.conditions [--networks N] [--nodes N] [--seed N] [--seconds S]

A system is ONNX Runtime without optimizations behind a pass that multiplies what a node computes by 1.5 (or flips it,
or adds one) where a condition holds on it: its operator, an attribute, the element type or rank of what it reads, or
what computes that. The condition is then known: a case is reduced to it where it has no more nodes than the condition
speaks of. `missed`: no network of the budget had a node of that sort whose result is read by an output.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import conrepair
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.cases.case import Case
from conrepair_lab.cases.reduce import Budget, reduce
from conrepair_lab.fuzz.looking import SUSPECT, look
from conrepair_lab.systems import ort
from conrepair_lab.systems.system import Setting, System

_FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16}
_INTEGERS = {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8}


@dataclass(frozen=True)
class Seen:
    """A node of a network, as conditions see it.

    Attributes:
        node: It.
        types: Element type and rank of each tensor, by name.
        by: The node that computes a tensor.
    """

    node: onnx.NodeProto
    types: Mapping[str, tuple[int, int]]
    by: Mapping[str, onnx.NodeProto]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value."""
        return next((helper.get_attribute_value(item) for item in self.node.attribute if item.name == name), default)

    @property
    def kind(self) -> tuple[int, int]:
        """Element type and rank of the first input."""
        return self.types.get(self.node.input[0], (0, -1)) if self.node.input else (0, -1)

    def behind(self, operator: str) -> bool:
        """Whether an operator computes what it reads."""
        return any(name in self.by and self.by[name].op_type == operator for name in self.node.input)


@dataclass(frozen=True)
class Condition:
    """Where a pass is wrong.

    Attributes:
        name: In words.
        nodes: How many it speaks of.
        holds: On which nodes it is.
    """

    name: str
    nodes: int
    holds: Callable[[Seen], bool]


def _op(operator: str, more: Callable[[Seen], bool] = lambda seen: True) -> Callable[[Seen], bool]:
    return lambda seen: seen.node.op_type == operator and more(seen)


def _has(name: str, value: Any) -> Callable[[Seen], bool]:
    return lambda seen: seen.attribute(name) == value


def _inner_axis(seen: Seen) -> bool:
    return seen.attribute("axis", -1) not in {-1, seen.kind[1] - 1}


def _truncates(seen: Seen) -> bool:
    return seen.kind[0] in _FLOATS and seen.attribute("to") in _INTEGERS


def _of_halves(seen: Seen) -> bool:
    return seen.types.get(seen.node.input[1], (0, 0))[0] == TensorProto.FLOAT16


def _pair(first: str, second: str) -> Condition:
    return Condition(f"{second} behind {first}", 2, _op(second, lambda seen: seen.behind(first)))


CONDITIONS = (
    Condition("Conv with a stride", 1, _op("Conv", lambda s: max(s.attribute("strides", [1])) > 1)),
    Condition("Conv with groups", 1, _op("Conv", lambda s: s.attribute("group", 1) > 1)),
    Condition("MaxPool with a dilation", 1, _op("MaxPool", lambda s: max(s.attribute("dilations", [1])) > 1)),
    Condition("AveragePool with padding counted", 1, _op("AveragePool", _has("count_include_pad", 1))),
    Condition("ReduceSum that drops axes", 1, _op("ReduceSum", lambda s: s.attribute("keepdims", 1) == 0)),
    Condition("ReduceMax of whole numbers", 1, _op("ReduceMax", lambda s: s.kind[0] in _INTEGERS)),
    Condition("Softmax of another axis", 1, _op("Softmax", _inner_axis)),
    Condition("Concat of three", 1, _op("Concat", lambda s: len(s.node.input) > 2)),
    Condition("Concat of the first axis", 1, _op("Concat", lambda s: s.attribute("axis", 1) in {0, -s.kind[1]})),
    Condition("Transpose of four axes", 1, _op("Transpose", lambda s: s.kind[1] >= 4)),
    Condition("Gather with an axis", 1, _op("Gather", lambda s: s.attribute("axis", 0) != 0)),
    Condition("Cast of real numbers to whole ones", 1, _op("Cast", _truncates)),
    Condition("Clip without an upper bound", 1, _op("Clip", lambda s: len(s.node.input) < 3 or not s.node.input[2])),
    Condition("Gemm transposed", 1, _op("Gemm", lambda s: s.attribute("transB", 0) == 1)),
    Condition("MatMul of three axes", 1, _op("MatMul", lambda s: s.kind[1] >= 3)),
    Condition("Add in double precision", 1, _op("Add", lambda s: s.kind[0] == TensorProto.DOUBLE)),
    Condition("Mul of 64-bit numbers", 1, _op("Mul", lambda s: s.kind[0] == TensorProto.INT64)),
    Condition("ArgMax of the last one", 1, _op("ArgMax", lambda s: s.attribute("select_last_index", 0) == 1)),
    Condition("CumSum in reverse", 1, _op("CumSum", lambda s: s.attribute("reverse", 0) == 1)),
    Condition("LayerNormalization in front", 1, _op("LayerNormalization", _inner_axis)),
    Condition("Where of half precision", 1, _op("Where", _of_halves)),
    Condition("Squeeze of two axes", 1, _op("Squeeze", lambda s: s.kind[1] >= 3)),
    _pair("Transpose", "Reshape"),
    _pair("Relu", "Clip"),
    _pair("Conv", "Add"),
    _pair("Mul", "Add"),
    _pair("Cast", "Cast"),
    _pair("Unsqueeze", "Squeeze"),
    _pair("Neg", "Abs"),
    _pair("Concat", "Slice"),
)  # fmt: skip


def broken(model: onnx.ModelProto, condition: Condition) -> onnx.ModelProto:
    """The network as the pass leaves it.

    Args:
        model: Whose shapes can be inferred.
        condition: Where the pass is wrong.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    inferred = onnx.shape_inference.infer_shapes(made, data_prop=True).graph
    types = {
        item.name: (item.type.tensor_type.elem_type, len(item.type.tensor_type.shape.dim))
        for item in (*inferred.value_info, *inferred.input, *inferred.output)
    } | {item.name: (item.data_type, len(item.dims)) for item in graph.initializer}
    by = {name: node for node in graph.node for name in node.output}
    kept = list(graph.node)
    del graph.node[:]
    for place, node in enumerate(kept):
        graph.node.append(node)
        if not condition.holds(Seen(node, types, by)):
            continue
        name, last = node.output[0], graph.node[-1]
        kind = types.get(name, (0, 0))[0]
        last.output[0] = f"{name}_right"
        if kind == TensorProto.BOOL:
            graph.node.append(helper.make_node("Not", [last.output[0]], [name]))
            continue
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        operator, number = ("Mul", 1.5) if kind in _FLOATS else ("Add", 1)
        graph.initializer.append(numpy_helper.from_array(np.array(number, dtype), f"wrong_{place}"))
        graph.node.append(helper.make_node(operator, [last.output[0], f"wrong_{place}"], [name]))
    return made


class Broken(System):
    """ONNX Runtime behind a pass that is wrong under a condition."""

    name = "broken"
    settings: ClassVar[Mapping[str, Setting]] = {
        "pass": Setting("onnxruntime", {"optimization": "disabled"}, ("wrong",))
    }
    plain = usual = "pass"

    def __init__(self, condition: Condition) -> None:
        """Take the condition."""
        self._condition = condition

    def converted(self, model: Model, setting: Setting, folder: Path) -> Model:
        """The ONNX file: `open` breaks it."""
        return model

    def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
        """Break it, and open that."""
        path = Path(model.path).with_name("broken.onnx")
        onnx.save(broken(onnx.load(model.path), self._condition), path)
        return ort.SYSTEM.open(Model("onnx", str(path), model.sha256), ort.SYSTEM.settings["none"], folder)

    def program(self, setting: Setting) -> str:
        """None: it's no system of anybody's."""
        raise NotImplementedError


@dataclass(frozen=True)
class Row:
    """What came of a condition.

    Attributes:
        networks: Until it was found; 0 where it wasn't.
        nodes: Of the reduced case.
        seconds: Of the reduction.
        total: Seconds until then.
    """

    networks: int
    nodes: int = 0
    seconds: float = 0.0
    total: float = 0.0


def tried(condition: Condition, cases: list[Case], folder: Path, seconds: float) -> Row:
    """Look for a condition.

    Args:
        condition: Which.
        cases: In order.
        folder: For files.
        seconds: For the reduction.
    """
    system, begun = Broken(condition), time.monotonic()
    setting = system.settings["pass"]
    for place, case in enumerate(cases):
        found = look(case, system, setting, folder)
        if found.verdict != SUSPECT or found.suspicion is None:
            continue
        suspicion = found.suspicion
        if suspicion.same(look(case, ort.SYSTEM, ort.SYSTEM.settings["none"], folder).suspicion):
            continue  # the runtime's own
        before = time.monotonic()
        try:
            smallest = reduce(
                case,
                lambda item, wanted=suspicion: wanted.same(look(item, system, setting, folder).suspicion),  # type: ignore[misc]
                budget=Budget(seconds=seconds),
            ).case
        except UsageError:
            continue
        nodes = len(smallest.model.graph.node)
        return Row(place + 1, nodes, time.monotonic() - before, time.monotonic() - begun)
    return Row(0, total=time.monotonic() - begun)


def main() -> None:
    """Print a row a condition."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0, help="For a reduction.")
    parser.add_argument("--first", type=int, default=len(CONDITIONS), help="Conditions.")
    options = parser.parse_args()
    alone = conrepair.generated(count=options.networks // 3, nodes=1, seed=options.seed)
    more = conrepair.generated(count=options.networks - options.networks // 3, nodes=options.nodes, seed=options.seed)
    cases = [Case.of(network.model, network.inputs) for drawn in (alone, more) for network in drawn]
    print("| wrong | networks until it was found | nodes left (of the condition) | seconds to reduce |")
    print("|---|---|---|---|")
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for condition in CONDITIONS[: options.first]:
            row = rows[condition] = tried(condition, cases, Path(folder), options.seconds)
            left = f"{row.nodes} ({condition.nodes})" if row.networks else "missed"
            print(f"| {condition.name} | {row.networks or '-'} | {left} | {row.seconds:.1f} |", flush=True)
    found = {condition: row for condition, row in rows.items() if row.networks}
    exact = sum(row.nodes <= condition.nodes for condition, row in found.items())
    spent = statistics.median(row.total for row in found.values()) if found else 0.0
    sys.stdout.write(
        f"\nfound {len(found)} of {len(rows)}, reduced to the condition {exact}; {spent:.1f} s in the median\n"
    )


if __name__ == "__main__":
    main()
