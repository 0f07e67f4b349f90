"""Where attributes, weights or a bias would do, no layer is computed anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_networks import drawn, written
from onnx_repairs import repaired

SIZE = 8


def photo_network(path: Path, perm: tuple[int, ...] = (0, 3, 1, 2)) -> Path:
    text = f"""small (float[batch, {SIZE}, {SIZE}, 3] image) => (float[batch, 6] y) {{
        t = Transpose <perm = [{", ".join(map(str, perm))}]> (image)
        c = Conv <pads = [1, 1, 1, 1]> (t, w, b)
        r = Relu (c)
        d = Conv <pads = [1, 1, 1, 1]> (r, v)
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (d)
        f = Flatten (p)
        y = Gemm (f, dense)
    }}"""
    weights = {"w": drawn(8, 3, 3, 3, seed=1), "b": drawn(8, seed=2), "v": drawn(4, 8, 3, 3, seed=3)}
    return written(path, text, weights | {"dense": drawn(4 * (SIZE // 2) ** 2, 6, seed=4)})


@pytest.mark.parametrize("perm", [(0, 3, 2, 1)])
def test_a_wrong_permutation_in_front_of_the_input(perm: tuple[int, ...], tmp_path: Path) -> None:
    source, target = photo_network(tmp_path / "s.onnx"), photo_network(tmp_path / "t.onnx", perm)
    result = repaired(source, target, tmp_path / "out")
    assert result.mended, result.after.reason
    assert result.edits == ("`t` has perm (0, 3, 1, 2)",)
    assert result.model is not None
    assert len(onnx.load(result.model.path).graph.node) == len(onnx.load(target).graph.node)


def many_kernels(path: Path, *, transposed: bool) -> Path:
    """Kernels with rows and columns exchanged: all behind the first layer is as of an image that lies on its side."""
    layers = 12
    lines = ["r0 = Identity (image)"]
    weights = {"dense": drawn(4, 6, seed=300)}
    for place in range(layers):
        kernel = drawn(4, 4, 3, 3, seed=place + 1, scale=0.25)
        weights[f"w{place}"] = np.ascontiguousarray(kernel.swapaxes(2, 3)) if transposed else kernel
        weights[f"b{place}"] = drawn(4, seed=100 + place, scale=0.2)
        lines += [f"d{place} = Conv <pads = [1, 1, 1, 1]> (r{place}, w{place}, b{place})"]
        lines += [f"r{place + 1} = Relu (d{place})"]
    lines += [f"g = GlobalAveragePool (r{layers})", "f = Flatten (g)", "y = Gemm (f, dense)"]
    text = f"deep (float[batch, 4, {SIZE}, {SIZE}] image) => (float[batch, 6] y) {{ {' '.join(lines)} }}"
    return written(path, text, weights)


def test_kernels_that_are_all_transposed_are_set(tmp_path: Path) -> None:
    source = many_kernels(tmp_path / "s.onnx", transposed=False)
    target = many_kernels(tmp_path / "t.onnx", transposed=True)
    result = repaired(source, target, tmp_path / "out")
    assert result.mended, result.after.reason
    assert sorted(result.edits) == sorted(
        f"the weight of `d{place}` is taken from the original" for place in range(12)
    )
    assert result.model is not None
    assert len(onnx.load(result.model.path).graph.node) == len(onnx.load(target).graph.node)


@pytest.mark.parametrize("layer", ["Gemm", "MatMul"])
def test_a_lost_bias_has_its_own_place_where_there_is_one(layer: str, tmp_path: Path) -> None:
    weights = {"w": drawn(8, 8, seed=1), "v": drawn(8, 6, seed=2), "a": drawn(8, seed=3), "b": drawn(6, seed=4)}

    def network(path: Path, *, biased: bool) -> Path:
        joined = {"Gemm": "u = Gemm (x, w, a)", "MatMul": "m = MatMul (x, w) u = Add (m, a)"}[layer]
        first = joined if biased else f"u = {layer} (x, w)"
        text = f"""small (float[batch, 8] x) => (float[batch, 6] y) {{ {first} r = Relu (u) y = Gemm (r, v, b) }}"""
        return written(path, text, {name: item for name, item in weights.items() if biased or name != "a"})

    target = network(tmp_path / "t.onnx", biased=False)
    result = repaired(network(tmp_path / "s.onnx", biased=True), target, tmp_path / "out")
    assert result.mended, result.after.reason
    own = "the bias of `u` is taken from the original"
    assert result.edits == ((own,) if layer == "Gemm" else ("Add is put behind `u`",))
    assert result.model is not None
    more = len(onnx.load(result.model.path).graph.node) - len(onnx.load(target).graph.node)
    assert more == (layer == "MatMul")


def test_a_lost_bias_of_weights_on_a_grid_is_not_added_twice(tmp_path: Path) -> None:
    weights = {
        "q": np.random.default_rng(1).integers(-90, 90, (4, 3, 3, 3)).astype(np.int8),
        "step": np.float32(0.01),
    }
    weights |= {"b": drawn(4, seed=2), "v": drawn(4, 5, seed=3)}

    def network(path: Path, *, biased: bool) -> Path:
        read = "image, w, b" if biased else "image, w"
        text = f"""small (float[batch, 3, 6, 6] image) => (float[batch, 5] y) {{
            w = DequantizeLinear (q, step)\n c = Conv ({read})\n r = Relu (c)\n g = GlobalAveragePool (r)
            f = Flatten (g)\n y = MatMul (f, v) }}"""
        return written(path, text, {name: item for name, item in weights.items() if biased or name != "b"})

    source, target = network(tmp_path / "s.onnx", biased=True), network(tmp_path / "t.onnx", biased=False)
    result = repaired(source, target, tmp_path / "out")
    assert result.mended, result.after.reason
    assert result.edits == ("the bias of `c` is taken from the original",)
