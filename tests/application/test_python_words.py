"""What Python's verbs say: arguments that were meant, and no words of a shell or of a scratch folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small

import conrepair
from conrepair.formats.models.model import Description
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.intake.flags import in_python


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return str(small.onnx_convnet(tmp_path / "net.onnx"))


@pytest.mark.parametrize(
    ("verb", "given", "told"),
    [
        ("compare", {"sampels": 3}, r"conrepair.compare\(\) got an unexpected .*'sampels'; did you mean 'samples'\?"),
        ("localize", {"intermediate": ()}, r"'intermediate'; did you mean 'between'\?"),
        ("compare", {"xyzzy": 3}, r"conrepair.compare\(\) got an unexpected keyword argument 'xyzzy'$"),
    ],
)
def test_an_argument_that_was_meant_is_named(verb: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        getattr(conrepair, verb)("a.onnx", "b.onnx", **given)


def test_a_choice_that_was_meant_is_named() -> None:
    with pytest.raises(
        conrepair.ConrepairError, match=r"arithmetic is 'flota16'; did you mean 'float16'\? Known are "
    ):
        conrepair.compare("a.onnx", "b.onnx", arithmetic="flota16")
    with pytest.raises(conrepair.ConrepairError, match="arithmetic is 'xyzzy': give one of float32, "):
        conrepair.compare("a.onnx", "b.onnx", arithmetic="xyzzy")


def test_verbs_are_listed_before_they_are_imported() -> None:
    assert {"compare", "localize", "Verdict"} <= set(dir(conrepair))
    with pytest.raises(AttributeError) as wrong:
        conrepair.comapre  # type: ignore[attr-defined]  # noqa: B018
    assert (wrong.value.name, wrong.value.obj) == ("comapre", conrepair)  # by which Python says "Did you mean"


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ("Give --data: photos (with --recipe).", "Give data=: photos (with recipe=)."),
        ("--samples 32 runs all", "samples=32 runs all"),
        ("say so: --trust on the command line, trust=True", "say so: --trust on the command line, trust=True"),
        ("give --trust, or --no-check, or --opt", "give trust=True, or check=False, or setting="),
        ("as in --input batch,3,224,224.", "as in inputs=batch,3,224,224."),
        ("a--data b--, and --no-such-option stay", "a--data b--, and --no-such-option stay"),
    ],
)
def test_options_are_called_as_in_python(shell: str, python: str) -> None:
    assert in_python(shell) == python


def test_errors_call_options_as_in_python(net: str) -> None:
    with pytest.raises(conrepair.ConrepairError, match=r"Give data=: a folder of photos \(with recipe=\)"):
        conrepair.convert(net, to="onnx", via=["onnx-quantize-static"], in_process=True)


def test_an_object_is_called_as_its_argument(net: str) -> None:
    model, broken = onnx.load(net), onnx.load(net)
    broken.graph.node[0].op_type = "Convv"
    found = conrepair.compare(model, broken, in_process=True)
    assert found.reason.startswith("the model given as target can't be loaded as an ONNX model")
    assert "scratch" not in str(found)
    with pytest.raises(conrepair.ConrepairError, match=r"^the model given as target can't be loaded"):
        conrepair.localize(model, broken, in_process=True)
    with pytest.raises(conrepair.ConrepairError, match=r"^the model given as source can't be loaded"):
        conrepair.localize(broken, model, in_process=True)
    with pytest.raises(conrepair.ConrepairError, match=r"^the model given as model can't be loaded"):
        conrepair.inspect(broken, in_process=True)


def test_a_description_is_read_by_people(net: str) -> None:
    lines = str(conrepair.inspect(net, in_process=True)).splitlines()
    assert lines[0] == "format      ONNX, IR version 8, opset 17"
    assert lines[1].startswith("input       image: float32[batch, ")
    assert lines[3].startswith("parameters  ")
    assert "Conv 2" in lines[4]


def test_a_description_in_a_notebook_is_escaped() -> None:
    spec = TensorSpec("<script>", ("batch", 3), "float32")
    given = Description("ONNX", (spec,), (), {"Conv": 1}, 3, {"float32": 3}, metadata={"<b>": "&"})
    shown = given._repr_html_()
    assert "<tr><th>operators</th><td>Conv 1</td></tr>" in shown
    assert "&lt;script&gt;: float32[batch, 3]" in shown
    assert "<th>metadata &lt;b&gt;</th><td>&amp;</td>" in shown


def test_a_result_speaks_python(net: str) -> None:
    other = onnx.load(net)
    weight = next(item for item in other.graph.initializer if item.name == "dense")
    weight.CopyFrom(onnx.numpy_helper.from_array(-8 * onnx.numpy_helper.to_array(weight), "dense"))
    found = conrepair.compare(net, other, in_process=True)
    assert "Predictions: " in str(found)
    assert np.isfinite(found.row.comparison.worst.error.relative_l2)  # type: ignore[union-attr]
    assert "--" not in str(found)
