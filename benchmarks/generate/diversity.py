"""Diversity at equal numbers of operators: `python -m benchmarks.generate.diversity [--operators 4800] [--nodes 32]`.

After 4,800 operators GenCoG has an edge diversity of 0.57 and a vertex diversity of 0.079 of its 62 operators. The
operators here are 62 of ONNX's that are like GenCoG's: one where it has three, for windows of 1, 2 and 3 axes. Vertex
diversity isn't comparable by that: an operator of ONNX has more attributes and ranks, so its space is larger.
"""

from __future__ import annotations

import argparse
import time

from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.generated import block
from conrepair_lab.generate.networks import GeneratedNetwork
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

_LIKE_GENCOG = (
    *(
        "Abs",
        "Add",
        "Ceil",
        "Cos",
        "Div",
        "Exp",
        "Floor",
        "Less",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Pow",
        "Round",
        "Sigmoid",
    ),
    *("Sin", "Sqrt", "Sub", "Tan", "Tanh", "Greater", "Equal", "Not", "Where", "Clip", "ReduceSum", "ReduceMean"),
    *("ReduceMax", "ReduceMin", "ArgMax", "Concat", "Split", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Slice"),
    *("Expand", "Tile", "Cast", "Flatten", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalMaxPool", "LRN"),
    *("GlobalAveragePool", "Resize", "Pad", "Gemm", "MatMul", "BatchNormalization", "InstanceNormalization", "PRelu"),
    *("LayerNormalization", "Softmax", "LogSoftmax", "Relu", "LeakyRelu", "DepthToSpace", "SpaceToDepth"),
)


def main() -> None:
    """Make networks until there are so many operators, and say how diverse they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=int, default=4800)
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    quotas = dict.fromkeys(forms(), 0.0)
    wishes = Wishes(nodes=arguments.nodes, operators=_LIKE_GENCOG, quotas=quotas, woven=0.0, extremes=0.0)
    support, seen = Probed(wishes.opset, accepted), Diversity(_LIKE_GENCOG)
    started, number = time.process_time(), 0
    while seen.nodes.total() < arguments.operators:
        for network in block(wishes, arguments.seed, number, support):
            if isinstance(network, GeneratedNetwork) and seen.nodes.total() < arguments.operators:
                seen.add(network.draft)
        number += 1
    seconds = time.process_time() - started
    distinct = sum(map(len, seen.settings.values())) / seen.nodes.total()
    print(
        f"{len(_LIKE_GENCOG)} operators, {seen.nodes.total()} placed: edge {seen.edge:.3f}, "
        f"vertex {seen.vertex:.3f}, structural {seen.structural:.3f}; "
        f"settings that are no other's {distinct:.2f}; {seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
