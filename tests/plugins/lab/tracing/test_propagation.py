"""Where an error comes from: each kernel by itself, and what it does to the error that it's given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair_lab.tracing.propagation import matched, replay

Arrays = Mapping[str, npt.NDArray[np.float64]]

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\ng (float[1, 4] x) => (float[1, 4] z) <float[1] small = {1e-3}, '
RIGHT = "float[1] wrong = {1.0}> { f = Mul (x, wrong) h = Sin (f) g = Mul (h, small) y = Sub (h, g) z = Abs (y) }"
X = np.array([[0.5, -1.25, 2.0, 3.0]], np.float32)


def network(folder: Path, body: str):  # type: ignore[no-untyped-def]
    path = folder / "net.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + body), path)
    model = Model("onnx", str(path), model_sha256(path))
    return open_network(model, [TensorSpec("x", (1, 4), "float32")])


def bounded(values: dict[str, npt.NDArray[np.float64]]):  # type: ignore[no-untyped-def]
    return values, {name: 2e-7 * np.abs(array) + 1e-12 for name, array in values.items()}


def right(given: Arrays):  # type: ignore[no-untyped-def]
    """Each tensor from those in front of it, in float64, and a bound."""
    f = given["x"].astype(np.float64)
    h = np.sin(given.get("f", f))
    g = given.get("h", h) * np.float64(np.float32(1e-3))
    y = given.get("h", h) - given.get("g", g)
    return bounded({"f": f, "h": h, "g": g, "y": y, "z": np.abs(given.get("y", y))})


def test_a_wrong_factor_is_generated_and_then_passed_on(tmp_path: Path) -> None:
    found = replay(network(tmp_path, RIGHT.replace("{1.0}", "{1.01}")), {"x": X}, right({"x": X})[0], right).errors
    changes = {item.tensor: item.change for item in found}
    assert changes == {"f": "generated", "h": "passed on", "g": "passed on", "y": "passed on", "z": "passed on"}
    (first,) = [item for item in found if item.tensor == "f"]
    assert (first.operators, first.reads, first.incoming) == (("Mul",), ("x",), 0)
    assert first.introduced == pytest.approx(first.outgoing)


def test_rounding_alone_generates_nothing(tmp_path: Path) -> None:
    found = replay(network(tmp_path, RIGHT), {"x": X}, right({"x": X})[0], right).errors
    assert {item.change for item in found} <= {"exact", "rounded", "passed on"}


def test_cancellation_amplifies(tmp_path: Path) -> None:
    def near(given: Arrays):  # type: ignore[no-untyped-def]
        h = np.sin(given["x"].astype(np.float64))
        g = given.get("h", h) * np.float64(np.float32(0.99999))
        y = given.get("h", h) - given.get("g", g)
        return bounded({"h": h, "g": g, "y": y, "z": np.abs(given.get("y", y))})

    body = "float[1] near = {0.99999}> { h = Sin (x) g = Mul (h, near) y = Sub (h, g) z = Abs (y) }"
    found = {item.tensor: item for item in replay(network(tmp_path, body), {"x": X}, near({"x": X})[0], near).errors}
    assert found["y"].change == "amplified"
    assert found["y"].introduced < 1e-6 < found["y"].outgoing
    assert found["z"].change == "passed on"


def test_what_is_not_finite_is_said(tmp_path: Path) -> None:
    body = (
        "float[1] wrong = {0.0}> { f = Mul (x, wrong) h = Div (x, f) g = Mul (h, small) y = Sub (h, g) z = Abs (y) }"
    )
    found = {
        item.tensor: item for item in replay(network(tmp_path, body), {"x": X}, right({"x": X})[0], right).errors
    }
    assert not found["h"].finite
    assert found["h"].outgoing == float("inf")


def test_kernels_are_paired_by_name_and_else_by_their_values() -> None:
    values = {"a": np.arange(4.0), "b": np.arange(4.0) * 3, "c": np.ones(3)}
    others = {"a": np.arange(4.0), "fused": np.arange(4.0) * 3 + 1e-6, "d": np.zeros(3)}
    found = matched(values, others)
    assert [(item.one, item.two) for item in found] == [("a", "a"), ("b", "fused"), ("c", None)]
    assert found[0].confidence == 1
    assert 0.99 < found[1].confidence < 1
    assert found[2].confidence == 0


def beside(tmp_path: Path, one: str, two: str, wider: float = 1.0):  # type: ignore[no-untyped-def]
    """The first side's errors, with the other one to compare with; and a bound that's wider than rounding is."""
    sides = []
    for name, body in (("one", one), ("two", two)):
        (tmp_path / name).mkdir(parents=True)
        sides.append(network(tmp_path / name, body))

    def pieces(given: Arrays):  # type: ignore[no-untyped-def]
        values, bound = right(given)
        return values, {name: wider * array for name, array in bound.items()}

    found = replay(sides[0], {"x": X}, right({"x": X})[0], pieces, sides[1]).errors
    return {item.tensor: item for item in found}


@pytest.mark.parametrize("units", [1, 3])
def test_where_both_sides_compute_alike_a_single_unit_tells_the_kernel(units: int, tmp_path: Path) -> None:
    changed = RIGHT.replace("{1.0}", f"{{{1 + units * 2.0**-23!r}}}")
    found = beside(tmp_path, changed, RIGHT, wider=9)
    assert {name for name, item in found.items() if item.change == "differs"} == {"f"}
    assert found["f"].over < 1
    assert found["f"].apart == pytest.approx(units, abs=1)
    assert found["h"].apart == 0
    assert all(item.change != "differs" for item in beside(tmp_path / "same", RIGHT, RIGHT).values())


def test_where_they_compute_otherwise_right_kernels_may_be_apart(tmp_path: Path) -> None:
    """Two of five are apart: by a unit or two, or by many, of which the bound explains a share."""
    few = RIGHT.replace("{1.0}", "{1.0000002384185791}").replace("(h, small)", "(h, little)")
    few = few.replace("> { f", ", float[1] little = {0.0010000002}> { f")
    found = beside(tmp_path / "few", few, RIGHT, wider=100)
    assert found["f"].apart
    assert found["g"].apart
    assert all(item.change != "differs" for item in found.values())
    many = few.replace("1.0000002384185791", f"{1 + 16 * 2.0**-23!r}")
    assert beside(tmp_path / "many", many, RIGHT, wider=20)["f"].change == "differs"
    assert beside(tmp_path / "explained", many, RIGHT, wider=100)["f"].change != "differs"


def test_what_the_other_side_does_not_show_is_not_compared(tmp_path: Path) -> None:
    sides = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir(parents=True)
        sides.append(network(tmp_path / name, RIGHT))
    graph = sides[1].graph
    hidden = {"h": dataclasses.replace(graph.tensors["h"], observable=False)}
    sides[1].graph = dataclasses.replace(graph, tensors={**graph.tensors, **hidden})
    found = replay(sides[0], {"x": X}, right({"x": X})[0], right, sides[1]).errors
    assert {item.tensor: item.apart for item in found} == {"f": 0, "h": None, "g": None, "y": None, "z": 0}
