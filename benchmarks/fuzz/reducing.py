"""How small faults of ONNX Runtime become that are planted in generated networks, and in how many tries.

    python -m benchmarks.fuzz.reducing [--count N] [--nodes N] [--seed N] [--seconds S]

Planted are Pad with 0 in front of MaxPool on negative numbers, which the default optimizations take for the pool's
own padding, and functions whose kernels are far beyond their bound (docs/measured/accuracy.md). A case is judged by
the running bound alone: ONNX Runtime's answer has to stay beyond it, and for an optimization's fault the answer
without optimizations within. Div and Mul behind a Cast that does nothing are what two optimizations together make an
invalid graph of (onnxruntime issue 32416). `without`: networks that have no place for a fault, or that nobody can
judge so.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import conrepair
from conrepair.ground.runtime.words import shortened
from conrepair.verdicts.truth.bound import Analysis
from conrepair.verdicts.truth.judging import distances, judge
from conrepair_lab.cases.case import Case
from conrepair_lab.cases.reduce import Budget, Found, reduce
from conrepair_lab.generate.onnx_form import RefusedError, run
from conrepair_lab.tracing.exact_side import ACCURACY

Array = np.ndarray[Any, Any]
_FAR = 0.1
_LONGEST = 200


@dataclass(frozen=True)
class Plant:
    """A fault.

    Attributes:
        name: As it's shown.
        nodes: Makes nodes from a tensor `{x}` of float32 to `planted`, and the constants that they need.
        still: Whether a case has it.
    """

    name: str
    nodes: Callable[[str, int], tuple[list[onnx.NodeProto], Mapping[str, Array]]]
    still: Callable[[Case], bool]


def wrong(case: Case, *, optimized: bool) -> bool:
    """Whether ONNX Runtime's answer for an output is beyond its bound.

    Args:
        case: Any.
        optimized: Whether the answer without optimizations must be within.
    """
    model = case.model
    names = [item.name for item in model.graph.output]
    try:
        usual = run(model, case.inputs, names, optimized=True)
        plain = run(model, case.inputs, names)
    except RefusedError:
        return False
    try:
        found = Analysis(model).at(case.inputs, ACCURACY)
    except Exception:  # noqa: BLE001 (ONNX's reference raises a dozen types for what it can't run)
        return False
    for name in names:
        truth = np.asarray(found.truth[name])
        if truth.dtype.kind != "f" or usual[name].shape != truth.shape:
            continue
        judged = judge(usual[name], plain[name], truth, np.broadcast_to(found.bound[name], truth.shape))
        if judged.one.beyond and not (optimized and judged.two.beyond):
            return True
    return False


def padding_wrong(case: Case) -> bool:
    """Whether optimizations lead beyond the bound."""
    return wrong(case, optimized=True)


def function_wrong(case: Case) -> bool:
    """Whether a kernel does."""
    return wrong(case, optimized=False)


def apart(case: Case) -> bool:
    """Whether optimizations change an answer by far, for networks that nobody computes in float64."""
    model = case.model
    names = [item.name for item in model.graph.output]
    try:
        usual, plain = (run(model, case.inputs, names, optimized=way) for way in (True, False))
    except RefusedError:
        return False
    return any(usual[name].dtype.kind == "f" and (distances(usual[name], plain[name]) > _FAR).any() for name in names)


def refused(case: Case) -> bool:
    """Whether ONNX Runtime takes a network without optimizations alone."""
    model = case.model
    names = [item.name for item in model.graph.output]
    try:
        run(model, case.inputs, names)
    except RefusedError:
        return False
    try:
        run(model, case.inputs, names, optimized=True)
    except RefusedError as error:
        return "is not a graph input" in str(error)
    return False


def _divided(x: str, _: int) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
    """An optimization that joins Div and Mul, and one that takes away a Cast, leave a tensor that nobody computes."""
    return [
        helper.make_node("Tanh", [x], ["planted_unit"]),
        helper.make_node("Exp", ["planted_unit"], ["planted_above"]),
        helper.make_node("Cast", ["planted_unit"], ["planted_same"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Div", ["planted_one", "planted_above"], ["planted_part"]),
        helper.make_node("Mul", ["planted_part", "planted_same"], ["planted_product"]),
        helper.make_node("Sin", ["planted_product"], ["planted"]),
    ], {"planted_one": np.array(1, np.float32)}


def _pooled(x: str, elements: int) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
    rows = next(number for number in range(int(elements**0.5), 0, -1) if elements % number == 0)
    nodes = [
        helper.make_node("Reshape", [x, "planted_shape"], ["planted_rows"]),
        helper.make_node("Abs", ["planted_rows"], ["planted_size"]),
        helper.make_node("Sub", ["planted_minus", "planted_size"], ["planted_below"]),
        helper.make_node("Pad", ["planted_below", "planted_pads"], ["planted_padded"]),
        helper.make_node("MaxPool", ["planted_padded"], ["planted_pool"], kernel_shape=[2, 2]),
        helper.make_node("Tanh", ["planted_pool"], ["planted"]),
    ]
    return nodes, {
        "planted_shape": np.array([1, 1, rows, elements // rows], np.int64),
        "planted_minus": np.array(-0.25, np.float32),
        "planted_pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64),
    }


def _function(operator: str, low: float, high: float) -> Any:
    """A function of numbers in a range, between others."""

    def nodes(x: str, _: int) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
        return [
            helper.make_node("Tanh", [x], ["planted_unit"]),
            helper.make_node("Mul", ["planted_unit", "planted_scale"], ["planted_scaled"]),
            helper.make_node("Add", ["planted_scaled", "planted_middle"], ["planted_moved"]),
            helper.make_node(operator, ["planted_moved"], ["planted_found"]),
            helper.make_node("Mul", ["planted_found", "planted_scale"], ["planted"]),
        ], {
            "planted_scale": np.array((high - low) / 2, np.float32),
            "planted_middle": np.array((high + low) / 2, np.float32),
        }

    return nodes


PLANTS = (
    Plant("Pad, MaxPool", _pooled, padding_wrong),
    Plant("Pad, MaxPool, without a bound", _pooled, apart),
    Plant("Div, Mul, Cast", _divided, refused),
    Plant("Elu", _function("Elu", -1e-4, -1e-5), function_wrong),
    Plant("Sigmoid", _function("Sigmoid", -16.0, -14.0), function_wrong),
)


def planted(model: onnx.ModelProto, inputs: Mapping[str, Array], plant: Plant, seed: int) -> Case | None:
    """A network with a fault in it; None where there's no tensor for it.

    Args:
        model: Of a generated network.
        inputs: Its inputs.
        plant: The fault.
        seed: Of the place.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    inferred = onnx.shape_inference.infer_shapes(made).graph
    fitting = []
    for item in (*inferred.value_info, *inferred.output, *inferred.input):
        kind = item.type.tensor_type
        elements = int(np.prod([size.dim_value for size in kind.shape.dim]))
        if kind.elem_type == onnx.TensorProto.FLOAT and 8 <= elements <= 1 << 14:
            fitting.append((item.name, elements))
    if not fitting:
        return None
    name, elements = fitting[int(np.random.default_rng(seed).integers(len(fitting)))]
    nodes, constants = plant.nodes(name, elements)
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in constants.items())
    made.graph.output.append(helper.make_tensor_value_info("planted", onnx.TensorProto.FLOAT, None))
    inferred = onnx.shape_inference.infer_shapes(made, data_prop=True).graph
    made.graph.output[-1].CopyFrom(inferred.output[-1])
    return Case.of(made, inputs)


def main() -> None:
    """Print a row a plant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="Networks.")
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="For a case.")
    options = parser.parse_args()
    print("| planted | cases | nodes left, median | most | tries, median | seconds, median | smallest | without |")
    print("|---|---|---|---|---|---|---|---|")
    drawn = list(conrepair.generated(count=options.count, nodes=options.nodes, seed=options.seed))
    for plant in PLANTS:
        found: list[Found] = []
        for place, network in enumerate(drawn):
            case = planted(network.model, network.inputs, plant, options.seed + place)
            if case is not None and plant.still(case):
                found.append(reduce(case, plant.still, budget=Budget(seconds=options.seconds)))
                print(f"    {place}: {shown(found[-1].case)}", file=sys.stderr, flush=True)
        print(_row(plant.name, found, len(drawn) - len(found)), flush=True)


def shown(case: Case) -> str:
    """A small case in a line."""
    nodes = "; ".join(node.op_type for node in case.model.graph.node)
    fed = {name: array.tolist() for name, array in case.inputs.items()}
    return shortened(f"{nodes} {fed}", _LONGEST)


def _row(name: str, found: Sequence[Found], without: int) -> str:
    if not found:
        return f"| {name} | 0 | | | | | | {without} |"
    nodes = [len(item.case.model.graph.node) for item in found]
    tries, seconds = (
        statistics.median(values) for values in zip(*((f.tries, f.seconds) for f in found), strict=True)
    )
    smallest = sum(item.exact for item in found)
    return (
        f"| {name} | {len(found)} | {statistics.median(nodes):g} | {max(nodes)} | {tries:g} | {seconds:.1f} "
        f"| {smallest} | {without} |"
    )


if __name__ == "__main__":
    main()
