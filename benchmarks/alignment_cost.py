"""What localization costs in networks of many nodes and small tensors: the alignment's part of it, and the rest.

    python -m benchmarks.alignment_cost [--nodes 1000 3000 10000] [--kinds encoder pictures] [--faults 0 1] [--json]

Chains of blocks as ONNX: encoders (attention behind a causal mask, a perceptron), and residual convolutions on
pictures. The target has other names, independent nodes in another order, and in some of its blocks a weight that is
another one. Each case has a process of its own; what's counted are the processor's seconds (user and system) in
`localize_target` and the peak of the process's resident memory. Whether the pairs are the right ones, and the fault
where it was made, is checked.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

SECONDS, BYTES = 60.0, 2 << 30
"""Of the processor and of memory, for 10,000 nodes."""

_LARGE = 10_000
_STEPS, _WIDTH, _PICTURE = 6, 16, (2, 8, 6, 6)
_MASKED = -1e4

Array = npt.NDArray[Any]
Weights = dict[str, Array]


def main() -> int:
    """Measure and print; returns 1 when a target is missed, or a pair is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 3000, _LARGE])
    parser.add_argument("--kinds", nargs="+", default=sorted(BLOCKS), choices=sorted(BLOCKS))
    parser.add_argument("--faults", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", action="store_true", help="a single case, in this process")
    options = parser.parse_args()
    cases = [(kind, nodes, faults) for kind in options.kinds for nodes in options.nodes for faults in options.faults]
    if options.one:
        print(json.dumps(measure(*cases[0])))
        return 0
    rows = []
    for kind, nodes, faults in cases:
        words = [sys.executable, "-m", __spec__.name, "--one", "--kinds", kind, "--nodes", str(nodes)]
        done = subprocess.run([*words, "--faults", str(faults)], check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        if not options.json:
            print(_line(rows[-1]), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
    costly = [row for row in rows if row["nodes"] <= _LARGE and (row["cpu"] > SECONDS or row["peak"] > BYTES)]
    return int(bool(costly) or any(row["wrong"] or not row["found"] for row in rows))


def _line(row: Mapping[str, Any]) -> str:
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in row["parts"].items())
    return (
        f"{row['kind']:8s} {row['nodes']:6d} nodes, {row['faults']} faults: {row['cpu']:6.1f} s ({parts}; "
        f"{row['wall']:.1f} s in all), peak {row['peak'] / 2**20:.0f} MiB ({row['before'] / 2**20:.0f} before); "
        f"{row['pairs']} of {row['tensors']} tensors paired, {row['wrong']} wrongly; "
        f"{'what was done was found' if row['found'] else 'WHAT WAS DONE WAS NOT FOUND: ' + str(row['blamed'])}"
    )


# --- networks ---------------------------------------------------------------------------------------------


def _encoder(place: int, weights: Weights, generator: np.random.Generator) -> Iterator[onnx.NodeProto]:
    """18 nodes."""
    node, t = helper.make_node, f"t{place}"
    for role, shape in zip(
        "qkvoud", [(_WIDTH, _WIDTH)] * 4 + [(_WIDTH, 2 * _WIDTH), (2 * _WIDTH, _WIDTH)], strict=True
    ):
        weights[f"{role}w{place}"] = generator.normal(0, shape[0] ** -0.5, shape).astype(np.float32)
    for role in "gh":
        weights[f"{role}{place}"] = generator.normal(1, 0.1, _WIDTH).astype(np.float32)
    weights[f"b{place}"] = generator.normal(0, 0.1, 2 * _WIDTH).astype(np.float32)
    yield node("LayerNormalization", [t, f"g{place}"], [f"n{place}"])
    for role in "qkv":
        yield node("MatMul", [f"n{place}", f"{role}w{place}"], [f"{role}{place}"])
    yield node("Transpose", [f"k{place}"], [f"kt{place}"], perm=[0, 2, 1])
    yield node("MatMul", [f"q{place}", f"kt{place}"], [f"p{place}"])
    yield node("Div", [f"p{place}", "root"], [f"s{place}"])
    yield node("Add", [f"s{place}", "mask"], [f"m{place}"])
    yield node("Softmax", [f"m{place}"], [f"a{place}"], axis=-1)
    yield node("MatMul", [f"a{place}", f"v{place}"], [f"c{place}"])
    yield node("MatMul", [f"c{place}", f"ow{place}"], [f"o{place}"])
    yield node("Add", [t, f"o{place}"], [f"r{place}"])
    yield node("LayerNormalization", [f"r{place}", f"h{place}"], [f"l{place}"])
    yield node("MatMul", [f"l{place}", f"uw{place}"], [f"u{place}"])
    yield node("Add", [f"u{place}", f"b{place}"], [f"ub{place}"])
    yield node("Gelu", [f"ub{place}"], [f"ge{place}"])
    yield node("MatMul", [f"ge{place}", f"dw{place}"], [f"d{place}"])
    yield node("Add", [f"r{place}", f"d{place}"], [f"t{place + 1}"])


def _pictures(place: int, weights: Weights, generator: np.random.Generator) -> Iterator[onnx.NodeProto]:
    """7 nodes."""
    node, channels = helper.make_node, _PICTURE[1]
    last = f"t{place}"
    for part in "ab":
        weights[f"g{part}{place}"] = generator.normal(1, 0.1, channels).astype(np.float32)
        weights[f"h{part}{place}"] = generator.normal(0, 0.1, channels).astype(np.float32)
        weights[f"{part}w{place}"] = generator.normal(0, 0.12, (channels, channels, 3, 3)).astype(np.float32)
        scales = [f"g{part}{place}", f"h{part}{place}"]
        yield node("InstanceNormalization", [last, *scales], [f"n{part}{place}"])
        yield node("Relu", [f"n{part}{place}"], [f"r{part}{place}"])
        last = f"c{part}{place}"
        yield node("Conv", [f"r{part}{place}", f"{part}w{place}"], [last], pads=[1, 1, 1, 1])
    yield node("Add", [f"t{place}", last], [f"t{place + 1}"])


Block = Callable[[int, Weights, np.random.Generator], Iterator[onnx.NodeProto]]

BLOCKS: dict[str, tuple[Block, tuple[int, ...], str]] = {
    "encoder": (_encoder, (2, _STEPS, _WIDTH), "uw"),
    "pictures": (_pictures, _PICTURE, "aw"),
}
"""What writes a block, the shape of what goes through, and the role of a weight that can be wrong."""


def written(folder: Path, kind: str, nodes: int, faults: int) -> tuple[Path, Path, list[str], dict[str, str]]:
    """Write a network and its faulty twin.

    Returns:
        Both files, the source's tensors behind whose operators the faults are, and what the target calls each.
    """
    block, shape, role = BLOCKS[kind]
    generator = np.random.default_rng(20261120)
    weights: Weights = {"root": np.float32(_WIDTH**0.5), "mask": np.triu(np.full((_STEPS, _STEPS), _MASKED, "f4"), 1)}
    found: list[onnx.NodeProto] = []
    count = 0
    while len(found) < nodes:
        found.extend(block(count, weights, generator))
        count += 1
    ends = "t0", f"t{count}"
    _save(folder / "source.onnx", found, weights, shape, ends)
    blamed = []
    for fault in range(faults):
        place = count * (fault + 1) // (faults + 1)
        name = f"{role}{place}"
        weights[name] = generator.permutation(weights[name].reshape(-1)).reshape(weights[name].shape)
        blamed += [node.output[0] for node in found if name in node.input]
    names = [name for node in found for name in node.output]
    calls = {name: f"v{number}" for name, number in zip(names, generator.permutation(len(names)), strict=True)}
    calls |= dict.fromkeys(ends[:1], ends[0]) | {ends[1]: ends[1]}
    again = []
    for node in _in_another_order(found, ends[0], set(weights), generator):
        twin = onnx.NodeProto()
        twin.CopyFrom(node)
        twin.input[:] = [calls.get(name, name) for name in node.input]
        twin.output[:] = [calls[name] for name in node.output]
        again.append(twin)
    _save(folder / "target.onnx", again, weights, shape, ends)
    return folder / "source.onnx", folder / "target.onnx", blamed, calls


def _in_another_order(
    nodes: Sequence[onnx.NodeProto], begin: str, weights: set[str], generator: np.random.Generator
) -> Iterator[onnx.NodeProto]:
    readers: dict[str, list[int]] = {}
    missing = []
    for place, node in enumerate(nodes):
        reads = {name for name in node.input if name not in weights}
        missing.append(len(reads))
        for name in reads:
            readers.setdefault(name, []).append(place)
    known, ready = [begin], list[int]()
    while known or ready:
        for name in known:
            for place in readers.get(name, ()):
                missing[place] -= 1
                if not missing[place]:
                    ready.append(place)
        if not ready:
            return
        node = nodes[ready.pop(int(generator.integers(len(ready))))]
        yield node
        known = list(node.output)


def _save(
    path: Path, nodes: Sequence[onnx.NodeProto], weights: Weights, shape: tuple[int, ...], ends: tuple[str, str]
) -> None:
    first, last = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ends)
    used = {name for node in nodes for name in node.input}
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items() if name in used]
    graph = helper.make_graph(nodes, "blocks", [first], [last], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


# --- in a process of its own ------------------------------------------------------------------------------


def measure(kind: str, nodes: int, faults: int) -> dict[str, Any]:
    """Localize one case; seconds of the processor, bytes, and whether the result is right."""
    from conrepair.diagnosis.localization.localize import localize_target
    from conrepair.diagnosis.localization.options import Options
    from conrepair.diagnosis.localization.run.reference import Reference
    from conrepair.formats.models.model import Model
    from conrepair.formats.networks.network import open_network
    from conrepair.ground.data.tensor_spec import TensorSpec
    from conrepair.ground.runtime.files.whole import sha256_of

    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch:
        folder = Path(scratch)
        source, target, blamed, calls = written(folder, kind, nodes, faults)
        shape = BLOCKS[kind][1]
        feeds = {"t0": np.random.default_rng(1).normal(size=shape).astype(np.float32)}
        sides = [
            open_network(Model("onnx", str(path), sha256_of(path)), [TensorSpec("t0", shape, "float32")])
            for path in (source, target)
        ]
        before, started, cpu = _peak(), time.perf_counter(), time.process_time()
        found = localize_target(
            Reference(sides[0], folder / "source"), sides[1], [(feeds, feeds)], folder / "work", Options()
        )
        cpu, wall = time.process_time() - cpu, time.perf_counter() - started
    pairs = found.alignment.pairs
    names = [fault.source_tensor for fault in found.result.faults]
    return {
        "kind": kind,
        "nodes": len(calls),
        "faults": faults,
        "cpu": cpu,
        "wall": wall,
        "parts": dict(found.result.seconds),
        "before": before,
        "peak": _peak(),
        "tensors": len(found.alignment.sources),
        "pairs": len(pairs),
        "wrong": sum(calls.get(pair.source, pair.source) != pair.target for pair in pairs),
        "blamed": names,
        "found": sorted(names) == sorted(blamed),
    }


def _peak() -> int:
    """Of the process's resident memory, so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


if __name__ == "__main__":
    sys.exit(main())
