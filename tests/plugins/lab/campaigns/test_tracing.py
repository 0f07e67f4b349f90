"""A trace from search to setting: what's wrong, which kernel, switch and form; and what is nobody's fault."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from stand_in import StandIn, bounded_sigmoid, keep_tanh, leave_all, naive_tanh, registered, shifted_erf

import conrepair
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConfigError, InferenceError, UsageError
from conrepair.testing import assert_exact
from conrepair_lab.systems.system import Setting

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\ng (float[1, 16] x) => (float[1, 8] y) { '


def saved(path: Path, body: str, **weights: tuple[int, ...]) -> Path:
    model, rng = onnx.parser.parse_model(f"{HEAD}{body} }}"), np.random.default_rng(0)
    for name, shape in weights.items():
        array = rng.normal(scale=0.3, size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, path)
    return path


class Closed(StandIn):
    """It lets nobody look into it, and is given another file than the traced one."""

    file = "given.onnx"

    def observed(self, *_: object) -> None:
        return None

    def programmed(self, model: Model, setting: Setting, folder: Path) -> Model:
        copied = shutil.copy(model.path, folder / self.file)
        return Model("onnx", str(copied), model.sha256)


@pytest.fixture(autouse=True)
def systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that lose digits, one of which a pass mends; and a pass that is wrong."""
    registered(monkeypatch, StandIn(naive_tanh, passes=[leave_all, keep_tanh], name="tanh"))
    registered(monkeypatch, StandIn(bounded_sigmoid, passes=[leave_all], name="sigmoid"))
    registered(monkeypatch, Closed(passes=[shifted_erf, leave_all], name="closed"))


@pytest.fixture
def tanh(tmp_path: Path) -> Path:
    """The kernel loses the digits of small numbers, unless a pass keeps it."""
    return saved(tmp_path / "tanh.onnx", "a = MatMul (x, w) b = Tanh (a) y = MatMul (b, v)", w=(16, 16), v=(16, 8))


@pytest.fixture
def sigmoid(tmp_path: Path) -> Path:
    """The kernel holds its argument below 18, with passes and without."""
    body = "a = MatMul (x, w) b = Sub (a, c) d = Sigmoid (b) y = MatMul (d, v)"
    path = saved(tmp_path / "sigmoid.onnx", body, w=(16, 16), v=(16, 8))
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([14], np.float32), "c"))
    onnx.save(model, path)
    return path


def test_the_other_side_is_wrong_and_the_pass_is_named_that_mends(tanh: Path, tmp_path: Path) -> None:
    done = conrepair.trace(tanh, setting="tanh-all", evaluations=100)
    worst = done.found.deviations[0]
    assert (worst.kind, worst.blamed, done.exit_code) == ("wrong", "against", 1)
    assert worst.framework is not None
    assert worst.total is not None
    assert worst.framework.over is not None
    assert worst.framework.over > 1000
    assert worst.total.over is not None
    assert worst.total.over < 1
    assert [[item.name for item in mends] for mends in done.culprits.mends] == [["keep_tanh"]]
    assert done.culprits.builds <= 25
    guilty = [item for item in done.found.kernels.against if item.change == "generated"]
    assert [item.operators for item in guilty] == [("Tanh",)]
    assert [(form.form, form.healed) for form in done.found.forms] == [("tanh by e^x", True)]
    folder = done.save(tmp_path / "out")
    told = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
    assert told["exit_code"] == 1
    assert "Tanh" in (folder / "kernels.svg").read_text(encoding="utf-8")
    names = {path.name for path in folder.iterdir()}
    assert {"with.py", "without.py", "model.onnx", "inputs.npz", "repaired.onnx", "trace.txt"} <= names
    right = conrepair.trace(folder / "repaired.onnx", setting="tanh-none", evaluations=100)
    assert right.exit_code == 0


def test_behind_many_layers_a_wrong_kernel_is_told_by_an_estimate(tmp_path: Path) -> None:
    """The sigmoid again, where the bound has grown beyond all numbers."""
    depth = 24
    layers = "".join(
        f"m{place} = MatMul (h{place}, w{place}) h{place + 1} = Tanh (m{place}) " for place in range(depth)
    )
    body = f"h0 = Identity (x) {layers}b = Sub (h{depth}, c) d = Sigmoid (b) y = MatMul (d, v)"
    weights = {f"w{place}": (16, 16) for place in range(depth)}
    path = saved(tmp_path / "deep.onnx", body, v=(16, 8), c=(1,), **weights)
    model = onnx.load(path)
    for item in model.graph.initializer:
        array = onnx.numpy_helper.to_array(item)
        array = np.full(1, 18, np.float32) if item.name == "c" else array * np.float32(1 if item.name == "v" else 1.3)
        item.CopyFrom(onnx.numpy_helper.from_array(array, item.name))
    onnx.save(model, path)
    done = conrepair.trace(path, setting="sigmoid-all", granularity=1, evaluations=60)
    worst = done.found.deviations[0]
    assert (worst.kind, worst.blamed, worst.estimated) == ("wrong", "both", True)
    guilty = {item.tensor for item in done.found.kernels.setting if item.change == "generated"}
    assert guilty == {"d"}
    assert "(an estimate)" in str(done)


def test_both_sides_are_wrong_and_a_stable_form_heals(sigmoid: Path) -> None:
    done = conrepair.trace(sigmoid, setting="sigmoid-all", evaluations=100)
    worst = done.found.deviations[0]
    assert (worst.kind, worst.blamed) == ("wrong", "both")
    assert done.culprits.heals == done.culprits.causes == ()
    assert "bounded argument" in {form.form for form in done.found.forms if form.healed}
    assert {form.place for form in done.found.forms} == {"d"}
    with pytest.raises(AssertionError, match=r"wrong: sigmoid-all is .*; so is sigmoid-none"):
        assert_exact(sigmoid, setting="sigmoid-all", evaluations=100)


def test_where_kernels_cannot_be_looked_into_operators_are_bisected(tmp_path: Path) -> None:
    body = "a = MatMul (x, w) r = Sigmoid (a) s = Mul (r, a) b = Erf (a) t = Tanh (s) u = Mul (b, t)"
    path = saved(tmp_path / "erf.onnx", f"{body} y = MatMul (u, v)", w=(16, 16), v=(16, 8))
    done = conrepair.trace(path, setting="closed-all", evaluations=100, builds=8)
    assert done.found.deviations[0].blamed == "setting"
    assert [(form.place, form.healed) for form in done.found.forms] == [("b", True)]
    folder = done.save(tmp_path / "out")
    assert onnx.load(folder / "given.onnx") == onnx.load(path)
    repaired = onnx.load(folder / "repaired.onnx")
    assert {"Where", "Sigmoid", "Tanh"} <= {node.op_type for node in repaired.graph.node}


def test_exact_values_as_the_other_side(sigmoid: Path) -> None:
    done = conrepair.trace(sigmoid, setting="sigmoid-none", against="exact", evaluations=60)
    assert done.found.deviations[0].blamed == "setting"


def test_one_pass_alone(tanh: Path) -> None:
    done = conrepair.trace(tanh, setting="tanh-all", switch="keep_tanh", evaluations=100)
    assert done.found.against.name == "tanh-all without keep_tanh"
    assert done.found.deviations[0].blamed == "against"
    guilty = [item for item in done.found.kernels.against if item.change == "generated"]
    assert [(item.operators, item.culprits) for item in guilty] == [(("MatMul", "Tanh"), ("Tanh 'b'",))]
    with pytest.raises(ConfigError, match=r"did you mean 'keep_tanh'"):
        conrepair.trace(tanh, setting="tanh-all", switch="keep_tnah", evaluations=10)


def test_what_rounding_explains_is_nobody_s_fault(tmp_path: Path) -> None:
    path = saved(tmp_path / "net.onnx", "a = MatMul (x, w) b = Relu (a) y = MatMul (b, v)", w=(16, 16), v=(16, 8))
    done = conrepair.trace(path, setting="sigmoid-all", evaluations=100)
    assert done.exit_code == 0
    assert done.found.deviations[0].kind in {"equal", "within", "ill-conditioned"}
    assert_exact(path, setting="sigmoid-all", evaluations=100)


def test_weights_are_searched_around_what_they_are(tanh: Path) -> None:
    done = conrepair.trace(tanh, setting="tanh-all", evaluations=60, weights=True)
    weight = next(onnx.numpy_helper.to_array(item) for item in onnx.load(tanh).graph.initializer if item.name == "w")
    tried: list[npt.NDArray[np.float32]] = [np.asarray(feeds["w"]) for feeds in done.judged.feeds]
    assert all(array.shape == weight.shape for array in tried)
    assert any(not np.array_equal(array, weight) for array in tried)
    reach = 0.5 * np.maximum(np.abs(weight), np.abs(weight).mean())
    assert all(np.all(np.abs(array - weight) <= reach * 1.001) for array in tried)


def test_samples_whose_answers_change_are_counted(tanh: Path) -> None:
    rng = np.random.default_rng(1)
    data = np.concatenate([rng.normal(size=(6, 16)), 1e-9 * rng.normal(size=(2, 16))]).astype(np.float32)
    done = conrepair.trace(tanh, setting="tanh-all", evaluations=20, builds=1, data=data)
    assert done.found.changed is not None
    assert 0 < done.found.changed <= 0.25


def test_what_cannot_be_traced_is_said(tanh: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'tvm-O3'"):
        conrepair.trace(tanh, setting="tvm-O33")
    with pytest.raises(UsageError, match="granularity is for TVM alone"):
        conrepair.trace(tanh, setting="ort-all", granularity=4)
    with pytest.raises(UsageError, match="objective flip needs samples"):
        conrepair.trace(tanh, objective="flip")
    with pytest.raises(UsageError, match="low is 3 and high is 2"):
        conrepair.trace(tanh, low=3, high=2)
    whole = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (int64[4] x) => (int64[4] y) { y = Neg (x) }'
    )
    onnx.save(whole, tmp_path / "whole.onnx")
    with pytest.raises(conrepair.ConrepairError, match="no input holds floating point numbers"):
        conrepair.trace(tmp_path / "whole.onnx", setting="tanh-all")
    path = saved(
        tmp_path / "large.onnx", "a = Abs (x) b = Exp (a) c = Exp (b) d = Exp (c) y = MatMul (d, w)", w=(16, 8)
    )
    with pytest.raises((InferenceError, conrepair.ConrepairError), match="the network overflows"):
        conrepair.trace(path, setting="tanh-all", low=1e4, high=2e4, evaluations=20)


def test_the_same_seed_finds_the_same(sigmoid: Path) -> None:
    asked = {"setting": "sigmoid-all", "evaluations": 80, "seed": 5, "objective": "ulps"}
    one, two = (conrepair.trace(sigmoid, **asked) for _ in range(2))
    assert one.found.objective == "ulps"
    assert one.found.deviations == two.found.deviations
    assert one.found.history == two.found.history
