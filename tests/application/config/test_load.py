"""Every mistake in a configuration is named with its JSON path, and what was meant if that can be guessed."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

from conrepair.application.config.load import parse_config, read_json
from conrepair.application.config.model import AuditConfig
from conrepair.formats.backends.all_backends import BACKENDS
from conrepair.ground.runtime.errors import ConfigError, ExitCode

MODEL = {"name": "net", "path": "net.onnx"}


def with_model(**changes: Any) -> dict[str, Any]:
    return {"models": [MODEL | changes]}


def with_audit(**changes: Any) -> dict[str, Any]:
    return {"models": [MODEL]} | changes


def refusal(value: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(value, "my.json")
    assert caught.value.exit_code == ExitCode.USAGE
    text = str(caught.value)
    assert text.startswith("my.json: ")
    return text


def refusal_of_text(folder: Path, text: str | bytes) -> str:
    file = folder / "my.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        parse_config(read_json(file), str(file))
    assert str(file) in str(caught.value)
    return str(caught.value)


# --- Files ---


def test_a_file_that_isnt_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: no such configuration file.*conrepair run"):
        parse_config(read_json(tmp_path / "none.json"), "the file")


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        parse_config(read_json(tmp_path), "the file")


def test_bytes_that_arent_utf8(tmp_path: Path) -> None:
    assert "UTF-8" in refusal_of_text(tmp_path, b'{"name": "\xff"}')


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "models": [\n    {"name": "a" "zoo": "b"}\n  ]\n}', 3, 18),
        ('{"models": [],}', 1, 15),
        ("{'models': []}", 1, 2),
        ('{\n  // a comment\n  "models": []\n}', 2, 3),
        ("", 1, 1),
        ('{"models": [', 1, 13),
        ('{"models": []} {}', 1, 16),
    ],
)
def test_bad_json_is_located(tmp_path: Path, text: str, line: int, column: int) -> None:
    assert f"line {line}, column {column}: not valid JSON" in refusal_of_text(tmp_path, text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_doesnt_have(tmp_path: Path, number: str) -> None:
    """Python's parser lets them through; hashing the payload would fail on them much later."""
    text = json.dumps(with_model(factory="a:b", path=None, kwargs={"x": "NUMBER"})).replace('"NUMBER"', number)
    assert number in refusal_of_text(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a", "models": [], "name": "b"}',
        '{"models": [{"name": "a", "path": "x", "name": "b"}]}',
        '{"models": [{"name": "a", "path": "x", "kwargs": {"x": {"name": 1, "name": 1}}}]}',
    ],
)
def test_a_key_that_stands_twice(tmp_path: Path, text: str) -> None:
    assert "the key 'name' stands twice" in refusal_of_text(tmp_path, text)


def test_a_good_file(tmp_path: Path) -> None:
    file = tmp_path / "my.json"
    file.write_text(json.dumps(with_model(recipe="torchvision", conversions=["tf"])), encoding="utf-8")
    assert parse_config(read_json(file), "the file") == parse_config(json.loads(file.read_text()), "x")


# --- Shapes of values ---


MISTAKES: dict[str, tuple[Any, str, str]] = {
    # what is wrong: (configuration, JSON path, what the message says besides)
    "a list": ([], "$", "valid dictionary"),
    "null": (None, "$", "valid dictionary"),
    "a text": ("onnx", "$", '(given: "onnx")'),
    "no models": ({}, "$.models", "give at least one"),
    "an empty list of models": ({"models": []}, "$.models", "one of the sections 'architectures'"),
    "a family that doesn't exist": ({"architectures": [{"family": "tv"}]}, "$.architectures[0].family", "'keras'"),
    "models that are no list": ({"models": 3}, "$.models", "(given: 3)"),
    "a model that is no object": ({"models": ["net.onnx"]}, "$.models[0]", '(given: "net.onnx")'),
    "a typo at the top": (
        with_audit(bacth_size=4),
        "$.bacth_size",
        "unknown key 'bacth_size'; did you mean 'batch_size'?",
    ),
    "a key like no other": (
        with_audit(xyzzy=4),
        "$.xyzzy",
        "unknown key 'xyzzy'; known keys: $schema, architectures",
    ),
    "the attribute's name": (with_audit(schema_="x"), "$.schema_", "unknown key 'schema_'"),
    "a key that was taken out": (
        with_audit(localize={"suspiciousness": {"enabled": True}}),
        "$.localize.suspiciousness",
        "was taken out: localization names the layers at fault without it; leave it out",
    ),
    "a typo in a model": (
        with_model(skip_analisis=True),
        "$.models[0].skip_analisis",
        "did you mean 'skip_analysis'?",
    ),
    "a typo in the second model": (
        {"models": [MODEL, {"name": "b", "pth": "x"}]},
        "$.models[1].pth",
        "unknown key 'pth'; did you mean 'path'?",
    ),
    "a typo in a dataset": (with_audit(dataset={"foldr": "a"}), "$.dataset.foldr", "did you mean 'folder'?"),
    "a typo in a model's dataset": (
        with_model(dataset={"synthetic": {"sed": 1}}),
        "$.models[0].dataset.synthetic.sed",
        "did you mean 'seed'?",
    ),
    "a typo in a recipe": (
        with_model(recipe={"devisor": 255}),
        "$.models[0].recipe.devisor",
        "did you mean 'divisor'?",
    ),
    "a typo in a conversion": (
        with_model(conversions=["onnx", {"too": "onnx"}]),
        "$.models[0].conversions[1].too",
        "did you mean 'to'?",
    ),
    "a typo in an input": (
        with_model(inputs=[{"shape": [1], "dtyp": "int64"}]),
        "$.models[0].inputs[0].dtyp",
        "did you mean 'dtype'?",
    ),
    "a typo in a backend": (
        with_audit(backends=[{"name": "onnxruntime", "optimisation": "all"}]),
        "$.backends[0].optimisation",
        "did you mean 'optimization'?",
    ),
    "a typo in the stages": (with_audit(stages={"excute": True}), "$.stages.excute", "did you mean 'execute'?"),
    "a typo in the tolerances": (with_audit(tolerance={"rtoll": 1}), "$.tolerance.rtoll", "did you mean 'rtol'?"),
    "a typo in the limits": (with_audit(limits={"second": 1}), "$.limits.second", "did you mean 'seconds'?"),
    "a word for a number": (with_audit(batch_size="many"), "$.batch_size", '(given: "many")'),
    "a fraction": (with_audit(top_k=1.5), "$.top_k", "(given: 1.5)"),
    "zero": (with_audit(batch_size=0), "$.batch_size", "greater than or equal to 1 (given: 0)"),
    "too many workers": (with_audit(limits={"workers": 65}), "$.limits.workers", "64 (given: 65)"),
    "no time": (with_audit(limits={"seconds": 0}), "$.limits.seconds", "greater than 0"),
    "a negative tolerance": (with_audit(tolerance={"atol": -1e-3}), "$.tolerance.atol", "(given: -0.001)"),
    "a word for a boolean": (with_model(trust="perhaps"), "$.models[0].trust", '(given: "perhaps")'),
    "a number for a text": (with_model(path=3), "$.models[0].path", "valid string (given: 3)"),
    "a text for a list": (with_model(conversions="onnx"), "$.models[0].conversions", '(given: "onnx")'),
    "a text for an object": (with_audit(stages="all"), "$.stages", '(given: "all")'),
    "null for an object": (with_audit(limits=None), "$.limits", "valid dictionary"),
    "a list for an object": (with_model(kwargs=[1]), "$.models[0].kwargs", "valid dictionary"),
    "a future version": (with_audit(schema_version=2), "$.schema_version", "should be 1 (given: 2)"),
    "a word for a stage": (with_audit(stages={"repair": "all"}), "$.stages.repair", '(given: "all")'),
    "an unknown backend": (
        with_audit(backends=[{"name": "onnxrt"}]),
        "$.backends[0].name",
        "did you mean 'onnxruntime'? (given: \"onnxrt\")",
    ),
    "no backend": (with_audit(backends=[]), "$.backends", "at least 1"),
    "an unknown format": (
        with_model(conversions=["keras", "onx"]),
        "$.models[0].conversions[1]",
        "unknown format 'onx'; did you mean 'onnx'?",
    ),
    "a format like no other": (
        with_model(conversions=[{"to": "caffe2"}]),
        "$.models[0].conversions[0]",
        "unknown format 'caffe2'; known: torch, keras, tensorflow, tflite, onnx",
    ),
    "an empty format": (with_model(conversions=[""]), "$.models[0].conversions[0]", "unknown format ''"),
    "a conversion to nowhere": (
        with_model(conversions=[{}]),
        "$.models[0].conversions[0]",
        "'to' (a format) or 'via'",
    ),
    "no converters": (
        with_model(conversions=[{"via": []}]),
        "$.models[0].conversions[0]",
        "'to' (a format) or 'via'",
    ),
    "one converter": (
        with_model(conversions=[{"via": "onnx2torch"}]),
        "$.models[0].conversions[0].via",
        '(given: "onnx2torch")',
    ),
    "options without a converter": (
        with_model(conversions=[{"to": "onnx", "options": {"opset": 17}}]),
        "$.models[0].conversions[0].options.opset",
        "(given: 17)",
    ),
    "a conversion that is a number": (with_model(conversions=[7]), "$.models[0].conversions[0]", "(given: 7)"),
    "a recipe that is a number": (with_model(recipe=7), "$.models[0].recipe", "(given: 7)"),
    "half a size": (with_model(recipe={"size": [224]}), "$.models[0].recipe.size[1]", "required"),
    "an unknown fit": (
        with_model(recipe={"fit": "cropp"}),
        "$.models[0].recipe.fit",
        "'stretch', 'crop', 'pad' or 'none' (given: \"cropp\")",
    ),
    "an input without a shape": (with_model(inputs=[{"name": "x"}]), "$.models[0].inputs[0].shape", "required"),
    "an empty dimension": (with_model(inputs=[{"shape": [0]}]), "$.models[0].inputs[0].shape[0]", "greater than"),
    "an unknown layout": (
        with_model(inputs=[{"shape": [1], "layout": "nchw"}]),
        "$.models[0].inputs[0].layout",
        '(given: "nchw")',
    ),
    "no origin": ({"models": [{"name": "net"}]}, "$.models[0]", "exactly one of 'zoo', 'path', 'factory'"),
    "two origins": (with_model(zoo="mobilenet_v2"), "$.models[0]", "exactly one of 'zoo', 'path', 'factory'"),
    "no origin of data": (with_audit(dataset={}), "$.dataset", "exactly one of 'zoo', 'folder'"),
    "two origins of data": (with_audit(dataset={"zoo": "photos", "folder": "a"}), "$.dataset", "exactly one of"),
    "two origins of a model's data": (
        with_model(dataset={"tensors": "a", "synthetic": {}}),
        "$.models[0].dataset",
        "exactly one of",
    ),
    "nothing drawn": (with_audit(dataset={"synthetic": {"samples": 0}}), "$.dataset.synthetic.samples", "(given: 0)"),
    "no photos": (with_audit(dataset={"zoo": "photos", "limit": 0}), "$.dataset.limit", "(given: 0)"),
    "no name": ({"models": [{"path": "x"}]}, "$.models[0].name", "required"),
    "a name that leaves the folder": (with_model(name="../net"), "$.models[0].name", '(given: "../net")'),
    "a name of two dots": (with_model(name=".."), "$.models[0].name", '(given: "..")'),
    "a name with a slash": (with_audit(name="a/b"), "$.name", '(given: "a/b")'),
    "a name with a line break": (with_model(name="net\n"), "$.models[0].name", '(given: "net\\n")'),
    "an empty name": (with_model(name=""), "$.models[0].name", '(given: "")'),
    "a factory without a function": (
        {"models": [{"name": "net", "factory": "torchvision.models.mobilenet_v2"}]},
        "$.models[0].factory",
        '(given: "torchvision.models.mobilenet_v2")',
    ),
    "an unknown initialization": (with_model(initialize="random"), "$.models[0].initialize", '(given: "random")'),
    "one name for two models": ({"models": [MODEL, MODEL]}, "$.models[1].name", "two models are named 'net'"),
    "a comparison with nothing": (
        {"models": [MODEL, {"name": "b", "path": "x", "compare_with": "nett"}]},
        "$.models[1].compare_with",
        "'b' has compare_with 'nett', which isn't an original model here; did you mean 'net'?",
    ),
    "a comparison with itself": (with_model(compare_with="net"), "$.models[0].compare_with", "compare_with 'net'"),
    "a comparison with a conversion": (
        {
            "models": [
                MODEL,
                {"name": "b", "path": "x", "compare_with": "net"},
                {"name": "c", "path": "x", "compare_with": "b"},
            ]
        },
        "$.models[2].compare_with",
        "'c' has compare_with 'b'",
    ),
}


@pytest.mark.parametrize(("value", "path", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named(value: Any, path: str, words: str) -> None:
    text = refusal(value)
    lines = text.splitlines()[1:]
    assert len(lines) == 1, f"one mistake, one line: {text}"
    assert lines[0].startswith(f"  {path}: "), text
    assert words in lines[0], text


def test_mistakes_in_different_places_are_all_named() -> None:
    text = refusal(
        {
            "models": [{"name": "a", "pth": "x"}, {"name": "b", "path": 3}, {"path": "x"}],
            "batch_size": "many",
            "stages": {"repair": "all"},
        }
    )
    for path in ("$.models[0].pth", "$.models[1].path", "$.models[2].name", "$.batch_size", "$.stages.repair"):
        assert f"\n  {path}: " in text


def test_the_path_of_a_value_that_may_have_two_types() -> None:
    """A dimension is a number or a name; both refusals are of the same place in the file."""
    text = refusal(with_model(inputs=[{"shape": ["batch", 3.5]}]))
    assert all(line.startswith("  $.models[0].inputs[0].shape[1]: ") for line in text.splitlines()[1:]), text


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (with_audit(dataset={"synthetic": {"low": 1.0, "high": -1.0}}), "$.dataset.synthetic"),
        (with_audit(dataset={"synthetic": {"seed": -1}}), "$.dataset.synthetic.seed"),
        (with_audit(dataset={"synthetic": {"integer_high": -5}}), "$.dataset.synthetic.integer_high"),
        (with_model(inputs=[{"shape": [1, -3]}]), "$.models[0].inputs[0].shape"),
        (with_model(inputs=[{"shape": [1], "dtype": "flaot32"}]), "$.models[0].inputs[0].dtype"),
    ],
)
def test_values_that_could_only_fail_later_are_refused_now(value: Any, path: str) -> None:
    assert f"  {path}" in refusal(value)


# --- What is understood ---


def conversions(*wanted: Any) -> list[tuple[str | None, tuple[str, ...] | None, bool]]:
    config = parse_config(with_model(conversions=list(wanted)), "x")
    return [(item.to, item.via, item.enabled) for item in config.models[0].conversions]


def test_aliases_of_formats() -> None:
    aliases = {
        "pytorch": "torch",
        "PyTorch": "torch",
        "tf": "tensorflow",
        "TF": "tensorflow",
        "savedmodel": "tensorflow",
        "SavedModel": "tensorflow",
        "TensorFlow": "tensorflow",
        "ONNX": "onnx",
        "Keras": "keras",
        "TFLite": "tflite",
    }
    assert conversions(*aliases) == [(name, None, True) for name in aliases.values()]
    assert conversions(*({"to": name} for name in aliases)) == conversions(*aliases)


def test_the_prefix_noop_disables() -> None:
    wanted = ["noop_onnx", "noop_pytorch", "NOOP_TF", "noop_anything", {"via": ["noop_x", "onnx2torch"]}]
    assert [enabled for _, _, enabled in conversions(*wanted)] == [False] * 5
    assert conversions("onnx", {"via": ["torch-onnx-script"]}) == [
        ("onnx", None, True),
        (None, ("torch-onnx-script",), True),
    ]


def test_texts_in_place_of_objects() -> None:
    short = parse_config(
        with_audit(**with_model(recipe="keras:tf", conversions=["onnx"]), backends=["libraries"]), "x"
    )
    long = parse_config(
        with_audit(
            **with_model(recipe={"base": "keras:tf"}, conversions=[{"to": "onnx"}]), backends=[{"name": "libraries"}]
        ),
        "x",
    )
    assert short == long


def test_the_smallest_useful_configuration_and_its_defaults(tmp_path: Path) -> None:
    text = """{
  "models": [
    {"name": "net", "path": "net.onnx", "conversions": ["torch"]}
  ]
}
"""
    assert len(text.splitlines()) <= 10
    (tmp_path / "small.json").write_text(text)
    config = parse_config(read_json(tmp_path / "small.json"), "the file")
    assert config.dataset.zoo == "photos"
    assert [backend.name for backend in config.backends] == ["libraries"]
    assert (config.name, config.output, config.reuse) == ("audit", "generated", True)
    stages = config.stages
    assert (stages.build, stages.convert, stages.execute, stages.evaluate, stages.repair) == (*[True] * 4, False)


def test_a_configuration_survives_being_written() -> None:
    config = parse_config(with_model(conversions=["pytorch"], recipe="tflite", dataset={"synthetic": {}}), "x")
    again = AuditConfig.model_validate(json.loads(config.model_dump_json(by_alias=True)))
    assert again == config


def test_a_configuration_cant_be_changed_afterwards() -> None:
    config = parse_config(with_audit(), "x")
    with pytest.raises(ValueError, match="frozen"):
        config.batch_size = 3  # type: ignore[misc]


@pytest.mark.parametrize("key", ["path", "weights"])
@pytest.mark.parametrize("text", ["a\0b.onnx", "\ud800.onnx", f"{'x' * 300}.onnx"])
def test_what_can_be_no_path_is_refused_at_once(key: str, text: str) -> None:
    value = {"models": [{"name": "a", "path": "a.onnx"} | {key: text}]}
    with pytest.raises(ConfigError, match=rf"\$\.models\[0\]\.{key}: .*(no path|UTF-8)"):
        parse_config(value, "config.json")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"models": [{"name": "x" * 101, "path": "a.onnx"}]}, r"\$\.models\[0\]\.name"),
        ({"name": "x" * 101, "models": [{"name": "a", "path": "a.onnx"}]}, r"\$\.name"),
        ({"output": "x" * 201, "models": [{"name": "a", "path": "a.onnx"}]}, r"\$\.output"),
        ({"top_k": 2**63 - 1, "models": [{"name": "a", "path": "a.onnx"}]}, r"\$\.top_k"),
    ],
)
def test_what_would_end_a_run_behind_all_the_work_is_refused_at_once(value: Any, path: str) -> None:
    with pytest.raises(ConfigError, match=path):
        parse_config(value, "config.json")


def test_a_backend_has_a_name_that_fits_whatever_its_target() -> None:
    target = "llvm " + " ".join(f"-mattr=+feature{number}" for number in range(100))
    config = parse_config(
        {"models": [{"name": "a", "path": "a.onnx"}], "backends": [{"name": "tvm", "target": target}]}, "c"
    )
    assert len(config.backends[0].label) <= 200


@pytest.mark.parametrize("more", [{}, {"backends": []}, {"batch_size": 0}])
def test_many_models_take_no_time_for_each_pair(more: dict[str, Any]) -> None:
    models = [{"name": f"m{index}", "path": "a.onnx"} | more for index in range(30_000)]
    started = time.process_time()
    with contextlib.suppress(ConfigError):
        config = parse_config({"models": models}, "config.json")
        assert all(config.dataset_of(model) is config.dataset for model in config.models)
    assert time.process_time() - started < 4  # 0.5; with each pair, 15 and more


def test_of_many_mistakes_the_first_are_named() -> None:
    models = [{"name": f"m{index}", "path": "a.onnx", "batch_size": 0} for index in range(1000)]
    with pytest.raises(ConfigError, match="and 900 more") as raised:
        parse_config({"models": models}, "config.json")
    assert len(str(raised.value).splitlines()) == 102


def test_all_backends_are_those_that_are_known_with_optimizations_and_without() -> None:
    backends = parse_config(with_audit(backends="all"), "my.json").backends
    labels = [item.label for item in backends]
    assert {item.name for item in backends} == set(BACKENDS)
    assert {"libraries", "onnxruntime", "onnxruntime-disabled", "tvm-O0", "tvm-O3"} <= set(labels)
    assert len(labels) == len(set(labels))
