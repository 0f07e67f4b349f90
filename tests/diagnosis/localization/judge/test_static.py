"""Parameters that differ and no value shows it: named where nothing takes it back, not where something does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from localizing import localize_networks
from onnx_networks import drawn, written
from rewritten_networks import opened

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.options import Options
from conrepair.ground.graph.layer_graph import Array
from conrepair.verdicts.evaluate.verdict import Verdict


def localized(sources: tuple[Path, Path], feeds: dict[str, Array], folder: Path) -> Found:
    ours, theirs = (opened(path, feeds) for path in sources)
    return localize_networks(ours, theirs, [(feeds, feeds)], folder / "work", Options())


def words_of(found: Found) -> str:
    assert found.result.verdict is Verdict.EQUIVALENT
    assert found.guilty == ()
    [fault] = found.result.latent
    assert any("not triggered by these inputs" in words for words in fault.evidence)
    return fault.evidence[0]


def looked_up(path: Path, change: float = 1.0) -> Path:
    text = """small (int64[batch, 3] ids) => (float[batch, 3, 4] y) {
        e = Gather (table, ids)
        y = MatMul (e, w)
    }"""
    table = drawn(500, 6, seed=1)
    table[400] *= change
    return written(path, text, {"table": table, "w": drawn(6, 4, seed=2)})


def test_a_row_that_no_index_asked_for(tmp_path: Path) -> None:
    files = looked_up(tmp_path / "s.onnx"), looked_up(tmp_path / "t.onnx", 1.01)
    feeds = {"ids": np.random.default_rng(0).integers(0, 400, (4, 3))}
    assert words_of(localized(files, feeds, tmp_path)).endswith("1 of 500 slices of axis 0")


def saturated(path: Path, factor: float = 1.0) -> Path:
    text = """small (float[batch, 6] x) => (float[batch, 4] y) {
        z = Gemm (x, w, b)
        s = Sigmoid (z)
        t = MatMul (s, v)
        u = MatMul (x, q)
        y = Add (t, u)
    }"""
    weights = {"w": factor * drawn(6, 5, seed=1), "b": factor * 300 * np.sign(drawn(5, seed=2)), "v": drawn(5, 4)}
    return written(path, text, {name: np.float32(array) for name, array in weights.items()} | {"q": drawn(6, 4)})


def test_a_layer_in_front_of_what_saturates(tmp_path: Path) -> None:
    files = saturated(tmp_path / "s.onnx"), saturated(tmp_path / "t.onnx", 1.5)
    assert "scaled by 1.5" in words_of(localized(files, {"x": drawn(4, 6)}, tmp_path))


def last(path: Path, index: int) -> Path:
    text = """small (float[batch, 5, 6] x) => (float[batch, 4] y) {
        t = Gather <axis = 1> (x, i)
        y = MatMul (t, w)
    }"""
    return written(path, text, {"i": np.array(index), "w": drawn(6, 4)})


def balanced(path: Path, factor: float = 1.0) -> Path:
    text = """small (float[batch, 6] x) => (float[batch, 4] y) {
        a = MatMul (x, w)
        r = Relu (a)
        y = MatMul (r, v)
    }"""
    return written(path, text, {"w": np.float32(factor) * drawn(6, 5, seed=1), "v": drawn(5, 4) / np.float32(factor)})


def folded(path: Path, norm: bool) -> Path:
    scale = np.abs(drawn(5, seed=3)) + np.float32(0.5)
    weight, bias = drawn(5, 3, 3, 3, seed=1), drawn(5, seed=2)
    lines = "a = Conv (x, w, b) \n n = BatchNormalization (a, g, o, m, v)" if norm else "n = Conv (x, w, b)"
    text = f"small (float[batch, 3, 8, 8] x) => (float[batch, 5, 6, 6] y) {{ {lines} \n y = Relu (n) }}"
    if norm:
        given = {
            "g": scale,
            "o": np.zeros(5, np.float32),
            "m": np.zeros(5, np.float32),
            "v": np.float32([1 - 1e-5] * 5),
        }
        return written(path, text, {"w": weight, "b": bias, **given})
    return written(path, text, {"w": weight * scale[:, None, None, None], "b": bias * scale})


@pytest.mark.parametrize("case", ["balanced", "folded", "last"])
def test_what_a_conversion_writes_otherwise_is_not_named(case: str, tmp_path: Path) -> None:
    if case == "balanced":
        files, feeds = (balanced(tmp_path / "s.onnx"), balanced(tmp_path / "t.onnx", 4.0)), {"x": drawn(4, 6)}
    elif case == "last":
        files, feeds = (last(tmp_path / "s.onnx", 4), last(tmp_path / "t.onnx", -1)), {"x": drawn(2, 5, 6)}
    else:
        files = folded(tmp_path / "s.onnx", norm=True), folded(tmp_path / "t.onnx", norm=False)
        feeds = {"x": drawn(2, 3, 8, 8)}
    found = localized(files, feeds, tmp_path)
    assert found.result.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}
    assert found.result.latent == ()


GUARDS = {"max": "g = Max (n, tiny)", "clip": "g = Clip (n, tiny)", "none": "g = Identity (n)"}
ASKED = {
    "greater": "q = Greater (c, half)\n m = Cast <to = 1> (q)",
    "or equal": "q = GreaterOrEqual (c, half)\n m = Cast <to = 1> (q)",
    "turned": "q = Less (half, c)\n m = Cast <to = 1> (q)",
    "kept": "q = Greater (c, zero)\n f = Cast <to = 1> (q)\n m = Mul (c, f)",
    "kept or equal": "q = GreaterOrEqual (c, zero)\n f = Cast <to = 1> (q)\n m = Mul (c, f)",
}


def divided(path: Path, guard: str) -> Path:
    text = f"""small (float[batch, 6] x) => (float[batch, 4] y) {{
        c = MatMul (x, w)
        n = ReduceL2 <axes = [1]> (c)
        {GUARDS[guard]}
        d = Div (c, g)
        y = MatMul (d, v)
    }}"""
    weights = {"w": drawn(6, 5, seed=1), "v": drawn(5, 4), "tiny": np.float32(1e-12)}
    return written(path, text, weights if "tiny" in text else {"w": weights["w"], "v": weights["v"]})


def asked(path: Path, how: str) -> Path:
    body = ASKED[how]
    text = f"small (float[batch, 6] x) => (float[batch, 4] y) {{ c = MatMul (x, w)\n {body}\n y = MatMul (m, v) }}"
    number = {"half": np.float32(0.5)} if "half" in body else {"zero": np.float32(0)}
    return written(path, text, {"w": drawn(6, 5, seed=1), "v": drawn(5, 4)} | number)


@pytest.mark.parametrize(("one", "other"), [("max", "none"), ("none", "clip")])
def test_a_guard_of_a_division_that_only_one_side_has(one: str, other: str, tmp_path: Path) -> None:
    files = divided(tmp_path / "s.onnx", one), divided(tmp_path / "t.onnx", other)
    assert "in the converted model" in words_of(localized(files, {"x": drawn(4, 6)}, tmp_path))


def test_the_very_number_that_is_compared_with(tmp_path: Path) -> None:
    files = asked(tmp_path / "s.onnx", "greater"), asked(tmp_path / "t.onnx", "or equal")
    assert "`q` is GreaterOrEqual, `q` of the original is Greater" in words_of(
        localized(files, {"x": drawn(4, 6)}, tmp_path)
    )


@pytest.mark.parametrize(("one", "other"), [("greater", "turned"), ("kept", "kept or equal")])
def test_conditions_that_come_to_the_same(one: str, other: str, tmp_path: Path) -> None:
    files = asked(tmp_path / "s.onnx", one), asked(tmp_path / "t.onnx", other)
    assert localized(files, {"x": drawn(4, 6)}, tmp_path).result.latent == ()


def test_the_same_guard_by_another_operator(tmp_path: Path) -> None:
    files = divided(tmp_path / "s.onnx", "max"), divided(tmp_path / "t.onnx", "clip")
    assert localized(files, {"x": drawn(4, 6)}, tmp_path).result.latent == ()


def masked(path: Path, hidden: float) -> Path:
    text = """small (float[batch, 6, 8] x) => (float[batch, 6, 8] y) {
        q = MatMul (x, w)
        k = Transpose <perm = [0, 2, 1]> (x)
        s = MatMul (q, k)
        m = Add (s, mask)
        p = Softmax <axis = -1> (m)
        y = MatMul (p, x)
    }"""
    mask = np.where(np.triu(np.ones((6, 6)), 1) > 0, hidden, 0).astype(np.float32)
    return written(path, text, {"w": drawn(8, 8, seed=1), "mask": mask})


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [(-np.inf, -1e4, True), (-1e4, -np.inf, True), (-np.inf, -3.4e38, True), (-np.inf, -150.0, False)],
)
def test_a_mask_by_a_large_number_hides_as_much(ours: float, theirs: float, same: bool, tmp_path: Path) -> None:
    sides = masked(tmp_path / "s.onnx", ours), masked(tmp_path / "t.onnx", theirs)
    found = localized(sides, {"x": drawn(2, 6, 8, seed=3)}, tmp_path)
    assert (found.result.verdict, found.guilty) == (Verdict.EQUIVALENT, ())
    assert not found.result.latent if same else found.result.latent


def turned(path: Path, *, turn: bool, reads: str = "ReduceMean <axes = [2, 3], keepdims = 0> (r)") -> Path:
    text = f"""small (float[batch, 4, 5, 5] x) => (float[batch, N] y) {{
        c = ConvTranspose <strides = [2, 2]> (x, w)
        r = Relu (c)
        y = {reads}
    }}"""
    kernel = drawn(4, 3, 2, 2, seed=1)
    return written(path, text, {"w": kernel[:, :, ::-1, ::-1].copy() if turn else kernel})


def test_a_turned_kernel_in_front_of_a_mean(tmp_path: Path) -> None:
    sides = turned(tmp_path / "s.onnx", turn=False), turned(tmp_path / "t.onnx", turn=True)
    found = localized(sides, {"x": drawn(2, 4, 5, 5, seed=2)}, tmp_path)
    assert (found.result.verdict, found.guilty, found.result.latent) == (Verdict.EQUIVALENT, (), ())


def test_a_turned_kernel_that_samples_are_too_plain_to_show(tmp_path: Path) -> None:
    """Of zeros both kernels make zeros, and so does any mixture of them: that they are the same isn't shown."""
    reads = "Flatten (r)"
    sides = turned(tmp_path / "s", turn=False, reads=reads), turned(tmp_path / "t", turn=True, reads=reads)
    found = localized(sides, {"x": np.zeros((2, 4, 5, 5), np.float32)}, tmp_path)
    assert "flipped" in words_of(found)


def rotated(path: Path, *, interleaved: bool) -> Path:
    """Rotary positions of pairs that are a half apart, or side by side with the rows of both weights to match."""
    halves = [("0", "4", "1"), ("4", "8", "1")] if not interleaved else [("0", "8", "2"), ("1", "8", "2")]
    lines, values = [], {"c": drawn(6, 4, seed=5), "s": drawn(6, 4, seed=6), "axis": np.array([2])}
    values |= {f"n{number}": np.array([int(number)]) for number in "01248"}
    for name, seed in (("q", 1), ("k", 2)):
        weight = drawn(8, 8, seed=seed)
        values[f"{name}w"] = weight[:, np.arange(8).reshape(2, 4).T.reshape(-1)] if interleaved else weight
        lines += [f"{name} = MatMul (x, {name}w)"]
        lines += [
            f"{name}{part} = Slice ({name}, n{begin}, n{end}, axis, n{step})"
            for part, (begin, end, step) in zip("ab", halves, strict=True)
        ]
        lines += [
            f"{name}ac = Mul ({name}a, c)",
            f"{name}bs = Mul ({name}b, s)",
            f"{name}r = Sub ({name}ac, {name}bs)",
        ]
        lines += [
            f"{name}as = Mul ({name}a, s)",
            f"{name}bc = Mul ({name}b, c)",
            f"{name}i = Add ({name}as, {name}bc)",
        ]
        lines += [f"{name}o = Concat <axis = 2> ({name}r, {name}i)"]
    lines += ["t = Transpose <perm = [0, 2, 1]> (ko)", "y = MatMul (qo, t)"]
    text = f"small (float[batch, 6, 8] x) => (float[batch, 6, 6] y) {{ {chr(10).join(lines)} }}"
    return written(path, text, values)


def test_rows_of_weights_in_the_order_in_which_they_are_read(tmp_path: Path) -> None:
    sides = rotated(tmp_path / "s.onnx", interleaved=False), rotated(tmp_path / "t.onnx", interleaved=True)
    found = localized(sides, {"x": drawn(2, 6, 8, seed=3)}, tmp_path)
    assert (found.result.verdict, found.guilty, found.result.latent) == (Verdict.EQUIVALENT, (), ())
