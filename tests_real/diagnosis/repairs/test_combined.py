"""Two changes of which neither helps alone are tried together; pieces are looked at alone before the whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx_networks import drawn, written
from onnx_repairs import repaired

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.repairs.bench import Bench
from conrepair.formats.models.model import Model

WIDTH, BLOCKS = 12, 3


def masked(path: Path, *, behind: bool) -> Path:
    """Softmax of scores that a row is added to; or that row behind the softmax."""
    lines, weights = [], {}
    value = "x"
    for place in range(BLOCKS):
        a, b, c, d = (f"{name}{place}" for name in "abcd")
        softmax, mask = "[softmax{0}] {2} = Softmax <axis = -1> ({1})", "[mask{0}] {2} = Add ({1}, m{0})"
        first, second = (softmax, mask) if behind else (mask, softmax)
        lines += [
            f"[product{place}] {a} = MatMul ({value}, w{place})",
            first.format(place, a, b),
            second.format(place, b, c),
            f"[out{place}] {d} = MatMul ({c}, v{place})",
        ]
        weights |= {f"w{place}": drawn(WIDTH, WIDTH, seed=place), f"v{place}": drawn(WIDTH, WIDTH, seed=9 + place)}
        weights[f"m{place}"] = 3 * drawn(WIDTH, seed=20 + place)
        value = d
    text = "\n".join([*lines, f"y = Tanh ({value})"])
    return written(path, f"small (float[batch, {WIDTH}] x) => (float[batch, {WIDTH}] y) {{{text}}}", weights)


def padded(path: Path, *, apart: bool) -> Path:
    """Convolutions one behind the other, each padded by zeros, or by what lies at the edge."""
    lines, weights = [], {}
    value = "x"
    for place in range(BLOCKS):
        read, pads = value, "1, 1, 1, 1"
        if apart:
            read, pads = f"p{place}", "0, 0, 0, 0"
            lines.append(f'[pad{place}] {read} = Pad <mode = "edge"> ({value}, amounts)')
        lines += [
            f"[conv{place}] c{place} = Conv <pads = [{pads}]> ({read}, w{place}, b{place})",
            f"r{place} = LeakyRelu <alpha = 0.2> (c{place})",
        ]
        weights |= {f"w{place}": drawn(4, 4, 3, 3, seed=place) / 3, f"b{place}": drawn(4, seed=9 + place)}
        value = f"r{place}"
    amounts = {"amounts": drawn(8, seed=0).astype("int64") * 0 + [0, 0, 1, 1, 0, 0, 1, 1]} if apart else {}
    text = "\n".join([*lines, f"y = Tanh ({value})"])
    return written(
        path, f"small (float[batch, 4, 6, 6] x) => (float[batch, 4, 6, 6] y) {{{text}}}", weights | amounts
    )


def test_an_operator_at_another_place(tmp_path: Path) -> None:
    result = repaired(
        masked(tmp_path / "s.onnx", behind=False), masked(tmp_path / "t.onnx", behind=True), tmp_path / "o"
    )
    assert result.mended, result.after.reason
    assert result.after.output_error < 1e-6
    assert len(result.edits) == 2 * BLOCKS


def test_attributes_and_an_operator_too_many(tmp_path: Path) -> None:
    """Every layer is wrong, so nothing between them can be proven by its values."""
    result = repaired(
        padded(tmp_path / "s.onnx", apart=False), padded(tmp_path / "t.onnx", apart=True), tmp_path / "o"
    )
    assert result.mended, result.after.reason
    assert sorted(result.edits) == sorted(
        words
        for place in range(BLOCKS)
        for words in (f"`conv{place}` has pads (1, 1, 1, 1)", f"`pad{place}` is removed")
    )


def test_what_a_piece_alone_tells_is_not_asked_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    localized: list[Model] = []
    alone: list[Model] = []
    localize, look = Bench.localize, Bench.look_alone

    def counted(bench: Bench, model: Model) -> Found:
        localized.append(model)
        return localize(bench, model)

    def looked(bench: Bench, model: Model, found: Found, pieces: object) -> object:
        alone.append(model)
        return look(bench, model, found, pieces)  # type: ignore[arg-type]

    monkeypatch.setattr(Bench, "localize", counted)
    monkeypatch.setattr(Bench, "look_alone", looked)
    text = f"""small (float[batch, {WIDTH}] x) => (float[batch, {WIDTH}] y) {{
        a = MatMul (x, w) b = Erf (a) c = MatMul (b, v) d = FUNCTION (c) y = MatMul (d, u)
    }}"""
    weights = {name: drawn(WIDTH, WIDTH, seed=place) for place, name in enumerate("wvu")}
    source, target = (
        written(tmp_path / f"{name}.onnx", text.replace("FUNCTION", name), weights) for name in ("Softplus", "Tanh")
    )
    result = repaired(source, target, tmp_path / "o")
    assert result.mended, result.after.reason
    assert len({model.path for model in localized}) <= 3  # as it came, repaired, and once for the minimum
    assert alone
