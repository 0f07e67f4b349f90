"""python -m benchmarks.searching.onnxruntime_pairs: ONNX Runtime with all optimizations against none.

Networks are those of a folder, or convolutions whose channels go in blocks (NchwcTransformer) with functions between
that amplify. Errors are raw: no float64 tells which of them conditioning explains.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnxruntime

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair_lab.tracing.search.methods.all_methods import METHODS
from conrepair_lab.tracing.search.objectives import guide, one_sided, relative, scored
from conrepair_lab.tracing.search.search import run
from conrepair_lab.tracing.search.space import Space, space_of

Array = np.ndarray[Any, Any]
_LOOKS = "conditioning"  # it asks one side alone
_TYPES = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(bool)": "bool", "tensor(int32)": "int32"}


class RuntimePair:
    """A network's two sessions, and the largest relative error so far."""

    def __init__(self, path: Path | bytes) -> None:
        levels = onnxruntime.GraphOptimizationLevel
        self._sides = [self._session(path, level) for level in (levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL)]
        inputs = self._sides[0].get_inputs()
        self.space: Space = space_of([TensorSpec(item.name, tuple(item.shape), _TYPES[item.type]) for item in inputs])
        self.found = 0.0

    def evaluate(self, points: Array) -> Array:
        """Scores of points."""
        return np.array([self._score(point) for point in points])

    def answers(self, points: Array) -> list[list[Array]]:
        """What the optimized session gives for each point."""
        runs = (self._sides[0].run(None, self.space.feeds(point)) for point in points)
        return [[np.asarray(array) for array in found] for found in runs]

    def _score(self, point: Array) -> float:
        feeds = self.space.feeds(point)
        with np.errstate(all="ignore"):
            one, other = ([np.asarray(array) for array in side.run(None, feeds)] for side in self._sides)
            lost = one_sided(one, other)
            self.found = max(self.found, relative(one, other).max(initial=0), np.inf if lost else 0)
            return scored(guide, one, other)

    @staticmethod
    def _session(path: Path | bytes, level: Any) -> Any:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level, options.intra_op_num_threads, options.log_severity_level = level, 1, 3
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def convolutions(seed: int) -> bytes:
    """A network of two or three convolutions with functions behind them."""
    generator, names = np.random.default_rng(seed), ["Reciprocal", "Sigmoid", "Erf", "Tanh", "Exp", "Softplus", "Elu"]
    lines, weights, last = [], [], "x"
    for place in range(int(generator.integers(2, 4))):
        functions = generator.choice(names, 2, replace=False)
        lines += [f"c{place} = Conv <pads = [1, 1, 1, 1]> ({last}, w{place})"]
        lines += [f"f{place} = {functions[0]} (c{place})", f"y{place} = {functions[1]} (f{place})"]
        values = generator.normal(0, 1 / 12, (16, 16, 3, 3)).astype(np.float32)
        weights.append(onnx.numpy_helper.from_array(values, f"w{place}"))
        last = f"y{place}"
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 16, 4, 4] x) => (float[1, 16, 4, 4] '
    model = onnx.parser.parse_model(f"{head}{last}) {{ {' '.join(lines)} }}")
    model.graph.initializer.extend(weights)
    return model.SerializeToString()


def main() -> None:
    """Print the errors of each network, and how often they are large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="with networks; else 20 are made")
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    found: dict[str, list[list[float]]] = {name: [] for name in METHODS if name != _LOOKS}
    files = {path.parent.name: path for path in sorted(asked.folder.rglob("*.onnx"))} if asked.folder else {}
    networks = files or {str(seed): convolutions(seed) for seed in range(asked.networks)}
    for network, model in networks.items():
        pair = RuntimePair(model)
        chance = np.random.default_rng(0).uniform(-1, 1, (30, pair.space.size))
        pair.evaluate(chance)
        if not pair.found:
            print(f"{network}: no bit differs in 30 evaluations, skipped", flush=True)
            continue
        for name, errors in found.items():
            errors.append([])
            for seed in range(asked.seeds):
                pair.found = 0.0
                run(
                    METHODS[name](pair.space, asked.evaluations, seed, pair.answers),
                    pair.evaluate,
                    asked.evaluations,
                )
                errors[-1].append(pair.found)
        print(network, {name: f"{np.median(errors[-1]):.1e}" for name, errors in found.items()}, flush=True)
    for name, errors in found.items():
        every = np.array(errors or [[0.0]])
        shares = "  ".join(f">{limit:g} {np.mean(every > limit):6.1%}" for limit in (1e-3, 1e-2))
        print(f"{name:14} {shares}  of {every.size} runs")


if __name__ == "__main__":
    main()
