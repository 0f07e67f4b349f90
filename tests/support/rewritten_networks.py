"""Networks with repeated blocks, and the same networks in other words: renamed, reordered, with copies, damaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx_networks import NETWORKS, drawn, specs, written
from small_models import model_of

from conrepair.formats.networks.network import Network
from conrepair.formats.onnx.read.network import open_network

Array = npt.NDArray[Any]
CUBE = 8  # channels, height and width of the pictures: shapes tell nothing


def residual_blocks(path: Path, count: int = 4) -> Path:
    """Blocks that only their weights tell apart, on pictures whose sizes are all equal."""
    lines, weights = ["t0 = Conv <pads = [1, 1, 1, 1]> (image, stem, stem_b)"], {}
    for place in range(count):
        lines += [
            f"a{place} = Conv <pads = [1, 1, 1, 1]> (t{place}, one{place}, one_b{place})",
            f"n{place} = BatchNormalization (a{place}, scale{place}, shift{place}, mean{place}, var{place})",
            f"r{place} = Relu (n{place})",
            f"c{place} = Conv <pads = [1, 1, 1, 1]> (r{place}, two{place}, two_b{place})",
            f"s{place} = Add (t{place}, c{place})",
            f"t{place + 1} = Relu (s{place})",
        ]
        for role, (name, size) in enumerate((("one", 4), ("two", 4), ("one_b", 1), ("two_b", 1), ("shift", 1))):
            shape = (CUBE, CUBE, 3, 3)[:size]
            weights[f"{name}{place}"] = drawn(*shape, seed=10 * place + role, scale=0.15)
        weights[f"scale{place}"] = drawn(CUBE, seed=10 * place + 6, scale=0.1) + 1
        weights[f"mean{place}"] = drawn(CUBE, seed=10 * place + 7, scale=0.1)
        weights[f"var{place}"] = np.abs(drawn(CUBE, seed=10 * place + 8, scale=0.1)) + 1
    lines += [f"g = GlobalAveragePool (t{count})", "f = Flatten (g)", "y = Gemm (f, dense, dense_b)"]
    weights |= {"stem": drawn(CUBE, CUBE, 3, 3, seed=91, scale=0.15), "stem_b": drawn(CUBE, seed=92)}
    weights |= {"dense": drawn(CUBE, 6, seed=93), "dense_b": drawn(6, seed=94)}
    size = f"{CUBE}, {CUBE}, {CUBE}"
    text = f"small (float[batch, {size}] image) => (float[batch, 6] y) {{ {chr(10).join(lines)} }}"
    return written(path, text, weights)


def encoder_blocks(path: Path, count: int = 3, width: int = 16) -> Path:
    """Attention and a perceptron, several times."""
    lines, weights = [], {"heads": np.array([0, 0, 2, width // 2]), "flat": np.array([0, 0, width])}
    for place in range(count):
        t = f"t{place}" if place else "x"
        lines += [
            f"n{place} = LayerNormalization ({t}, g{place}, h{place})",
            *(f"{role}{place} = MatMul (n{place}, w{role}{place})" for role in "qkv"),
            *(f"{role}r{place} = Reshape ({role}{place}, heads)" for role in "qkv"),
            f"qt{place} = Transpose <perm = [0, 2, 1, 3]> (qr{place})",
            f"kt{place} = Transpose <perm = [0, 2, 3, 1]> (kr{place})",
            f"vt{place} = Transpose <perm = [0, 2, 1, 3]> (vr{place})",
            f"p{place} = MatMul (qt{place}, kt{place})",
            f"d{place} = Div (p{place}, root)",
            f"a{place} = Softmax <axis = -1> (d{place})",
            f"m{place} = MatMul (a{place}, vt{place})",
            f"b{place} = Transpose <perm = [0, 2, 1, 3]> (m{place})",
            f"j{place} = Reshape (b{place}, flat)",
            f"o{place} = MatMul (j{place}, wo{place})",
            f"u{place} = Add (o{place}, {t})",
            f"l{place} = LayerNormalization (u{place}, gg{place}, hh{place})",
            f"up{place} = MatMul (l{place}, wu{place})",
            f"ac{place} = Gelu (up{place})",
            f"dn{place} = MatMul (ac{place}, wd{place})",
            f"t{place + 1} = Add (u{place}, dn{place})",
        ]
        for index, role in enumerate("qkvo"):
            weights[f"w{role}{place}"] = drawn(width, width, seed=20 * place + index, scale=0.4)
        weights[f"wu{place}"] = drawn(width, 2 * width, seed=20 * place + 5, scale=0.3)
        weights[f"wd{place}"] = drawn(2 * width, width, seed=20 * place + 6, scale=0.3)
        for index, role in enumerate(("g", "h", "gg", "hh")):
            weights[f"{role}{place}"] = drawn(width, seed=20 * place + 7 + index, scale=0.2) + (index % 2 == 0)
    lines.append(f"y = Identity (t{count})")
    text = f"small (float[batch, steps, {width}] x) => (float[batch, steps, {width}] y) {{ {chr(10).join(lines)} }}"
    return written(path, text, {**weights, "root": np.float32(np.sqrt(width / 2))}, opset=20)


def branches(path: Path) -> Path:
    """Four branches of one shape that nothing but their weights tells apart, joined in order."""
    lines = [
        f"c{place} = Conv <pads = [1, 1, 1, 1]> (image, w{place})\n r{place} = Relu (c{place})" for place in range(4)
    ]
    lines += ["j = Concat <axis = 1> (r0, r1, r2, r3)", "g = GlobalAveragePool (j)", "y = Flatten (g)"]
    weights = {f"w{place}": drawn(4, 3, 3, 3, seed=place) for place in range(4)}
    text = f"small (float[batch, 3, 12, 10] image) => (float[batch, 16] y) {{ {chr(10).join(lines)} }}"
    return written(path, text, weights)


WRITERS = {name: write for name, (write, _) in NETWORKS.items() if name != "branching"}  # reads inside an attribute
WRITERS |= {"residual blocks": residual_blocks, "encoder blocks": encoder_blocks, "branches": branches}


def feeds_of(name: str) -> dict[str, Array]:
    if name == "residual blocks":
        return {"image": drawn(2, CUBE, CUBE, CUBE, scale=1)}
    if name == "encoder blocks":
        return {"x": drawn(2, 5, 16, scale=1)}
    if name == "branches":
        return {"image": drawn(2, 3, 12, 10, scale=1)}
    return NETWORKS[name][1]()


def opened(path: Path, feeds: Mapping[str, Array]) -> Network:
    model = model_of("onnx", path)
    return open_network(model, specs(model, feeds))


def renamed(path: Path, target: Path, seed: int = 0, *, copies: bool = False) -> dict[str, str]:
    """Write the same network with other names, nodes in another order, and copies of tensors in between.

    Returns:
        What each tensor is called now; inputs and outputs keep their names.
    """
    proto = onnx.load(path)
    graph, generator = proto.graph, np.random.default_rng(seed)
    kept = {item.name for item in (*graph.input, *graph.output)}
    before = [name for node in graph.node for name in node.output if name]
    numbers = generator.permutation(len(before))
    names = {name: name if name in kept else f"v{number}" for name, number in zip(before, numbers, strict=True)}
    made = {item.name for item in (*graph.input, *graph.initializer)}
    waiting, nodes = list(graph.node), []
    while waiting:
        ready = [node for node in waiting if all(name in made for name in node.input if name)]
        node = ready[int(generator.integers(len(ready)))]
        waiting.remove(node)
        made.update(node.output)
        reads = [names.get(name, name) for name in node.input]
        if copies and reads[0] in names.values() and generator.random() < 0.4:
            nodes.append(helper.make_node("Identity", reads[:1], [f"copy{len(nodes)}"], f"copying{len(nodes)}"))
            reads[0] = nodes[-1].output[0]
        node.input[:] = reads
        node.output[:] = [names.get(name, name) for name in node.output]
        node.name = f"node{len(nodes)}"
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]
    onnx.save(proto, target)
    return names


def damaged(path: Path, target: Path, weights: Sequence[str], factor: float = 1.5) -> Path:
    """Write the network with some weights multiplied."""
    proto = onnx.load(path)
    missing = set(weights) - {tensor.name for tensor in proto.graph.initializer}
    assert not missing, missing
    for tensor in proto.graph.initializer:
        if tensor.name in weights:
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array((array * factor).astype(array.dtype), tensor.name))
    onnx.save(proto, target)
    return target
