"""From configured conversions to a tree of steps."""

from __future__ import annotations

from typing import Any

import pytest

from conrepair.application.config.load import parse_config
from conrepair.application.config.model import AuditConfig, ModelConfig
from conrepair.application.pipeline.from_config import active_models, check_converters, goals_of
from conrepair.application.pipeline.plan import Conversion, Goal, plan_conversions
from conrepair.formats.converters import all_converters
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConfigError


def model(*conversions: Any, name: str = "net") -> ModelConfig:
    return ModelConfig.model_validate({"name": name, "path": "x.onnx", "conversions": conversions})


def plan(*conversions: Any, framework: str = "torch") -> list[Conversion]:
    config = model(*conversions)
    check_converters(AuditConfig(models=(config,)))
    steps, impossible = plan_conversions(config.name, goals_of(config.conversions), Model(framework, "net", ""))
    for error in impossible.values():
        raise error
    return steps


def names(steps: list[Conversion]) -> list[str]:
    return [step.name for step in steps]


def refusal(*conversions: Any, framework: str = "torch") -> str:
    with pytest.raises(ConfigError) as caught:
        plan(*conversions, framework=framework)
    return str(caught.value)


def via(*steps: str, **options: dict[str, Any]) -> dict[str, Any]:
    return {"via": steps, "options": {name.replace("_", "-"): value for name, value in options.items()}}


def test_nothing_configured_is_nothing_to_do() -> None:
    assert plan() == []


def test_one_step() -> None:
    (step,) = plan("onnx")
    assert step.name == "net/torch-onnx-dynamo"
    assert (step.parent, step.route, step.final) == ("net", "torch-onnx-dynamo", True)
    assert step.step.name == "torch-onnx-dynamo"
    assert step.options == step.step.complete({})


def test_what_was_asked_for_is_passed_on() -> None:
    steps = plan(via("torch-onnx-script", "onnx-quantize-static", "onnx-onnxslim", "onnx-float16"), "onnx")
    assert [step.asked for step in steps] == [None, "int8", "int8", "float16", None]
    quantize = {"to": "tflite", "options": {"keras-tflite": {"quantize": "int8"}}}
    (step, plain) = plan(quantize, "tflite", framework="keras")
    assert (step.name, step.asked) == ("net/keras-tflite,quantize=int8", "int8")
    assert (plain.name, plain.asked) == ("net/keras-tflite", None)


def test_a_chain_has_its_parents_first() -> None:
    steps = plan("torch")
    assert names(steps) == ["net/torch-onnx-dynamo", "net/torch-onnx-dynamo+onnx2torch"]
    assert [step.parent for step in steps] == ["net", "net/torch-onnx-dynamo"]
    assert [step.final for step in steps] == [False, True]


def test_common_beginnings_are_shared() -> None:
    steps = plan(
        via("keras-onnx-tf2onnx", "onnx2torch"),
        via("keras-onnx-tf2onnx", "onnx2torch", "torch-onnx-script"),
        via("keras-onnx-tf2onnx", "onnx2torch", "torch-onnx-dynamo"),
        framework="keras",
    )
    assert names(steps) == [
        "net/keras-onnx-tf2onnx",
        "net/keras-onnx-tf2onnx+onnx2torch",
        "net/keras-onnx-tf2onnx+onnx2torch+torch-onnx-script",
        "net/keras-onnx-tf2onnx+onnx2torch+torch-onnx-dynamo",
    ]
    assert [step.final for step in steps] == [False, True, True, True]
    place = {step.name: index for index, step in enumerate(steps)}
    assert all(step.parent == "net" or place[step.parent] < place[step.name] for step in steps)


@pytest.mark.parametrize("order", [("onnx", "torch"), ("torch", "onnx")])
def test_a_step_in_between_that_is_wanted_itself_is_final(order: tuple[str, ...]) -> None:
    steps = plan(*order)
    assert names(steps) == ["net/torch-onnx-dynamo", "net/torch-onnx-dynamo+onnx2torch"]
    assert [step.final for step in steps] == [True, True]


def test_the_same_wish_twice_is_one() -> None:
    assert names(plan("onnx", "onnx", {"to": "onnx"}, via("torch-onnx-dynamo"))) == ["net/torch-onnx-dynamo"]


def test_changed_options_are_in_the_name_and_separate() -> None:
    default = plan(via("torch-onnx-script"))[0].options["opset"]
    steps = plan(
        via("torch-onnx-script", "onnx2torch"),
        via("torch-onnx-script", "onnx2torch", torch_onnx_script={"opset": 13}),
        via("torch-onnx-script", torch_onnx_script={"opset": 13, "fold_constants": False}),
        via("torch-onnx-script", torch_onnx_script={"opset": default}),
    )
    assert names(steps) == [
        "net/torch-onnx-script",
        "net/torch-onnx-script+onnx2torch",
        "net/torch-onnx-script,opset=13",
        "net/torch-onnx-script,opset=13+onnx2torch",
        "net/torch-onnx-script,fold_constants=False,opset=13",
    ]
    assert [step.options["opset"] for step in steps if step.step.name == "torch-onnx-script"] == [default, 13, 13]
    assert steps[3].parent == steps[2].name
    assert [step.final for step in steps] == [True, True, False, True, True]


def test_disabled_conversions_are_left_out() -> None:
    assert names(plan("noop_keras", "onnx", via("noop_x"))) == ["net/torch-onnx-dynamo"]


def test_an_unknown_option_names_the_model_the_conversion_and_the_options_there_are() -> None:
    text = refusal("onnx", via("torch-onnx-script", torch_onnx_script={"opsett": 13}))
    assert text.startswith("$.models[0].conversions[1]: converter torch-onnx-script has no option 'opsett'; it has: ")
    assert "opset (" in text


def test_an_option_of_the_wrong_type() -> None:
    text = refusal(via("torch-onnx-script", torch_onnx_script={"opset": "13"}))
    assert "conversions[0]: option 'opset' of torch-onnx-script takes int" in text
    assert "not '13'" in text


def test_options_for_a_converter_that_isnt_used() -> None:
    text = refusal({"to": "onnx", "options": {"torch-onnx-script": {"opset": 13}}})
    assert "options are given for torch-onnx-script, but the conversion is by torch-onnx-dynamo" in text


@pytest.fixture
def no_way_to_tflite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the converters that write TFLite; with them, every format is reached from every other."""
    left = {name: step for name, step in all_converters.CONVERTERS.items() if step.target != "tflite"}
    monkeypatch.setattr(all_converters, "CONVERTERS", left)


@pytest.mark.usefixtures("no_way_to_tflite")
def test_an_impossible_conversion_leaves_the_others() -> None:
    steps, impossible = plan_conversions("net", (Goal("tflite"), Goal("torch")), Model("onnx", "net", ""))
    assert names(steps) == ["net/onnx2torch"]
    assert list(impossible) == ["to tflite"]


@pytest.mark.usefixtures("no_way_to_tflite")
def test_no_route_says_what_can_be_reached() -> None:
    text = refusal("noop_onnx", "onnx", "tflite", framework="onnx")
    assert text.startswith("there is no route from onnx to tflite; ")
    assert "from onnx one reaches: " in text


def test_pins_are_checked() -> None:
    assert "conversions[0]: there is no converter 'torch-onx-script'" in refusal(via("torch-onx-script"))
    gone = "there is no converter 'onnx-keras-onnx2keras' any more, as onnx2keras fails on files that came from Keras"
    assert f"{gone}: use onnx-keras" in refusal(via("onnx-keras-onnx2keras"))
    assert "reads onnx, but is given torch" in refusal(via("onnx2torch"))
    assert "ends at onnx, not at tflite" in refusal({"to": "tflite", "via": ["torch-onnx-script"]})


def test_the_same_conversion_of_two_models_has_two_names() -> None:
    steps = [
        step for name in ("a", "b") for step in plan_conversions(name, (Goal("onnx"),), Model("torch", "net", ""))[0]
    ]
    assert names(steps) == ["a/torch-onnx-dynamo", "b/torch-onnx-dynamo"]


# --- Models that are left out ---


def audit(*models: dict[str, Any]) -> AuditConfig:
    return parse_config({"models": [{"path": "x.onnx"} | item for item in models]}, "x")


def test_all_models_are_active() -> None:
    config = audit({"name": "a"}, {"name": "b", "compare_with": "a"})
    assert [item.name for item in active_models(config.models)] == ["a", "b"]


def test_a_skipped_model_takes_along_what_is_compared_with_it() -> None:
    config = audit(
        {"name": "a", "skip_analysis": True},
        {"name": "b", "compare_with": "a"},
        {"name": "c"},
        {"name": "d", "compare_with": "c"},
        {"name": "e", "compare_with": "c", "skip_analysis": True},
    )
    assert [item.name for item in active_models(config.models)] == ["c", "d"]
