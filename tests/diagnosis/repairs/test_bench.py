"""What a piece of a changed target says that is run alone."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pytest
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.bench import Alone, Bench
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.verdicts.evaluate.tolerance import Tolerance

WIDTH = 8


def scaled(path: Path, factor: float, first: str = "Tanh") -> Model:
    """A product that is taken so many times, between two functions."""
    text = f"""small (float[batch, {WIDTH}] x) => (float[batch, {WIDTH}] y) {{
        a = {first} (x)
        b = MatMul (a, w)
        c = Mul (b, factor)
        y = Tanh (c)
    }}"""
    weights = {"w": drawn(WIDTH, WIDTH, seed=1), "factor": np.full(WIDTH, factor, np.float32)}
    return model_of("onnx", written(path, text, weights))


def looked(before: float, after: float, folder: Path, options: Options, *, first: str = "Tanh") -> dict[str, Alone]:
    """What a look at the guilty pieces says of a target that another one becomes."""
    right, wrong = scaled(folder / "s.onnx", 1), scaled(folder / "t.onnx", before)
    changed = scaled(folder / "u.onnx", after, first)
    inputs = framework("onnx").describe(right).inputs
    (folder / "work").mkdir()
    source = FedModel(right, inputs, DataReference("synthetic", 4, samples=inputs), None)
    bench = Bench(source, dataclasses.replace(source, model=wrong), folder / "work", options)
    found = bench.localize(wrong)
    assert len(found.guilty) == 1
    return dict(bench.look_alone(changed, found, found.guilty))


def test_what_was_looked_into_is_not_looked_into_again(tmp_path: Path) -> None:
    right, wrong = scaled(tmp_path / "s.onnx", 1), scaled(tmp_path / "t.onnx", 2.0)
    inputs = framework("onnx").describe(right).inputs
    source = FedModel(right, inputs, DataReference("synthetic", 10, samples=inputs), None)
    target, options, left = dataclasses.replace(source, model=wrong), Options(samples=10), []
    with tempfile.TemporaryDirectory(dir=tmp_path) as room:
        localize_models(source, target, Path(room), options, leave=left.append)
    (known,) = left
    others = Options(samples=10, tolerance=Tolerance(noise_margin=3.0)), dataclasses.replace(options, samples=6)
    assert not any(known.is_of(source, target, other) for other in others)
    assert not known.is_of(target, source, options)
    benches = []
    for name, looked_at in (("anew", None), ("on", known)):
        (tmp_path / name).mkdir()
        benches.append(Bench(source, target, tmp_path / name, options, looked_at))
    anew, on = benches
    assert on.localize(wrong) is known.found
    assert on.localize(wrong).result.faults == anew.localize(wrong).result.faults
    assert on.localize(right).result.faults == anew.localize(right).result.faults == ()
    assert [on.range_of(name) for name in "abc"] == [anew.range_of(name) for name in "abc"]


@pytest.mark.parametrize(
    ("before", "after", "right", "nearer"),
    [
        (2.0, 1.0, True, True),
        (2.0, 1.5, False, True),
        (2.0, 3.0, False, False),
        (2.0, 0.0, False, False),  # as far off, on the other side
        (2.0, float("nan"), False, False),
    ],
)
def test_a_piece_alone_tells_what_a_change_does_to_it(
    before: float, after: float, right: bool, nearer: bool, tmp_path: Path
) -> None:
    seen = looked(before, after, tmp_path, Options(samples=4))
    assert list(seen) == ["c"]
    assert (seen["c"].right, seen["c"].nearer) == (right, nearer)
    assert seen["c"].error == pytest.approx(abs(after - 1), abs=1e-6) or np.isnan(after)


def test_what_changes_nothing_there_is_not_told(tmp_path: Path) -> None:
    assert looked(2.0, 2.0, tmp_path, Options(samples=4)) == {}


def test_a_change_in_front_of_what_is_fed_is_not_told(tmp_path: Path) -> None:
    assert looked(2.0, 1.0, tmp_path, Options(samples=4), first="Sin") == {}


def test_bits_are_not_told_apart_from_faults_by_a_piece_alone(tmp_path: Path) -> None:
    assert looked(2.0, 1.0, tmp_path, Options(samples=4, quantized=True)) == {}
