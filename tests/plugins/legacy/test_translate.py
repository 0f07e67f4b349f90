"""What a configuration of the older form becomes, and that nothing of it is dropped silently."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from legacy_configs import config, library, minimal, model, repair, torch_library
from pydantic import BaseModel

from conrepair.application.config.load import parse_config
from conrepair.application.config.older import AccountEntry, KeyOutcome, Translation, grouped, older_form
from conrepair.application.pipeline.from_config import check_converters
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.zoo.catalog import MODELS
from conrepair_legacy import schema
from conrepair_legacy.origins import ModelNames
from conrepair_legacy.translate import FORM, translate

ROOT = Path(__file__).parents[3]


def translated(value: Any, folder: Path) -> Translation:
    return translate(value, folder / "old.json")


def models_of(value: Any, folder: Path) -> list[dict[str, Any]]:
    result = translated(value, folder)
    assert result.value is not None
    assert result.config is not None
    check_converters(result.config)
    return list(result.value["models"])


def entry(result: Translation, path: str) -> AccountEntry:
    return next(item for item in result.entries if item.path == path)


def of_model(folder: Path, **changes: Any) -> Translation:
    """The translation of a configuration of one model without libraries, unless they're given."""
    plain = {"dll_libraries": [], "export_dll_libraries": [], "export_dlls": False}
    return translated({"models": [model(**plain | changes)], "backend": "libraries"}, folder)


def _leaves(path: str, value: Any) -> list[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    places = [(f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}", item) for key, item in items]
    return [leaf for place, item in places for leaf in _leaves(place, item)] or [path]


# --- The whole ---


def test_every_key_is_accounted_for(tmp_path: Path) -> None:
    value = config()
    result = translated(value, tmp_path)
    paths = {item.path for item in result.entries}
    for leaf in _leaves("$", value):
        ancestors = {leaf[:end] for end in range(2, len(leaf) + 1) if end == len(leaf) or leaf[end] in ".["}
        assert paths & ancestors, f"nothing is said of {leaf}"
    assert not [item for item in result.entries if "nothing is known of it" in item.words]
    assert all(item.words for item in result.entries)


def test_the_tests_configuration_has_every_key_of_the_schema() -> None:
    def keys(value: Any) -> set[str]:
        if isinstance(value, list):
            return set().union(*(keys(item) for item in value))
        return set(value).union(*(keys(item) for item in value.values())) if isinstance(value, dict) else set()

    given = keys(config()) | {"weights_url", "weights_file"}  # those have a test of their own
    for name, kind in _kinds().items():
        assert set(kind.model_fields) <= given, name


def _kinds() -> dict[str, type[BaseModel]]:
    """Objects of the schema that have keys."""
    kinds = {name: item for name, item in vars(schema).items() if name.startswith("Legacy")}
    assert len(kinds) == 11
    return kinds


def test_the_documentation_has_every_key() -> None:
    text = (ROOT / "docs" / "from-conrepair.md").read_text(encoding="utf-8")
    summed_up = set(schema.LegacyPaths.model_fields) | set(schema.LegacyDevice.model_fields) | {"id", "selected"}
    summed_up |= set(schema.LegacyDataset.model_fields)
    for name, kind in _kinds().items():
        for key in kind.model_fields:
            documented = key in text or key.removeprefix("source_").removeprefix("target_") in text
            assert documented or key in summed_up, f"{key} of {name}"


def test_the_result_is_valid_and_its_converters_exist(tmp_path: Path) -> None:
    result = translated(config(), tmp_path)
    assert result.value is not None
    parsed = parse_config(json.loads(json.dumps(result.value)), "new")
    assert parsed == result.config
    check_converters(parsed)
    assert result.runnable


def test_entries_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    paths = [item.path for item in translated(config(), tmp_path).entries]
    assert paths.index("$.note") < paths.index("$.backend") < paths.index("$.models[0].name")
    assert paths.index("$.models[0].dll_libraries[1].library") < paths.index("$.opt_level")


def test_unknown_keys_are_named(tmp_path: Path) -> None:
    result = of_model(tmp_path, surprise={"a": 1})
    assert entry(result, "$.models[0].surprise.a").outcome is KeyOutcome.IGNORED
    assert "nothing is known of it" in entry(result, "$.models[0].surprise.a").words


def test_wrong_types_are_named_with_their_places(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(config(runs_no="many", models=[model(layers={"input": 3})]), tmp_path)
    assert "\n  $.runs_no: " in str(caught.value)
    assert "\n  $.models[0].layers.input: " in str(caught.value)


def test_what_is_recognised() -> None:
    assert FORM.has(config())
    assert FORM.has(minimal())
    assert FORM.has({"models": [{"name": "a", "dll_libraries": []}]})
    assert not FORM.has(json.loads((ROOT / "config.json").read_text(encoding="utf-8")))
    assert not FORM.has({"models": [{"name": "a", "path": "x"}], "datasets": {}, "backend": "libraries"})
    assert FORM.has({"devices": {}})
    assert older_form({"schema_version": 1, "devices": {}}) is None
    assert not FORM.has([])


def test_entries_that_say_the_same_are_shown_as_one() -> None:
    entries = [AccountEntry(f"$.m[{i}].{key}", KeyOutcome.IGNORED, "same") for i in (0, 1) for key in ("a", "b")]
    assert [item.path for item in grouped(entries)] == ["$.m[0].{a, b} and 2 more like it"]


# --- Models ---


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "torchvision_models.resnet18",
            {"factory": "torchvision.models:resnet18", "kwargs": {"weights": "IMAGENET1K_V1"}},
        ),
        ("torchvision_models.mobilenet_v2", {"zoo": "mobilenet_v2"}),
        ("efficientnet_lite0", {"zoo": "efficientnet_lite0", "recipe": "efficientnet-lite"}),
        ("/models/net.pt", {"path": "models/net.pt", "inputs": [{"shape": [1, 3, 224, 224], "dtype": "float32"}]}),
    ],
)
def test_models_of_torch(text: str, fields: dict[str, Any], tmp_path: Path) -> None:
    result = of_model(tmp_path, model=text)
    assert result.value is not None
    found = result.value["models"][0]
    assert {key: found[key] for key in fields} == fields


@pytest.mark.parametrize(
    ("library", "text", "fields"),
    [
        ("keras", "keras.applications.MobileNetV2", {"factory": "keras.applications:MobileNetV2"}),
        ("keras", "keras.applications.resnet_v2.ResNet101V2", {"factory": "keras.applications:ResNet101V2"}),
        ("keras", "net.h5", {"path": "net.h5"}),
        ("tf", "/models/mobilenet_v2.pb", {"path": "models/mobilenet_v2.pb"}),
        ("tf", "/models/saved", {"path": "models/saved"}),
        ("tflite", "net.tflite", {"path": "net.tflite"}),
        ("onnx", "net.onnx", {"path": "net.onnx"}),
    ],
)
def test_models_of_others(library: str, text: str, fields: dict[str, Any], tmp_path: Path) -> None:
    result = of_model(tmp_path, type="remote", library=library, url=text, model=None)
    assert result.value is not None
    found = result.value["models"][0]
    assert {key: found[key] for key in fields} == fields
    assert "inputs" not in found


def test_the_names_of_the_zoo() -> None:
    from conrepair_legacy import origins

    assert set(origins._ZOO) == set(MODELS)
    assert MODELS["mobilenet_v2"].factory == "torchvision.models:mobilenet_v2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("torchvision_models.resnet18(pretrained=True)", "expressions aren't evaluated"),
        ("__import__('os').system('touch evil')", "expressions aren't evaluated"),
        ("keras.applications.inception_v3", "is a module of Keras"),
        ("timm.models.resnet18", "no library that is known here"),
        ("https://example.org/a/net.onnx?raw=1", "aren't downloaded"),
        ("keras.applications.ResNet50", "`library` is torch"),
        ("", "no `model`"),
    ],
)
def test_models_that_cant_be_had(text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = of_model(tmp_path, model=text, url=text)
    assert result.value is None
    assert not result.runnable
    assert words in entry(result, "$.models[0].model").words
    assert entry(result, "$.models[0].model").outcome is KeyOutcome.REFUSED
    assert not (tmp_path / "evil").exists()


def test_a_download_that_is_here_already(tmp_path: Path) -> None:
    (tmp_path / "out" / "models").mkdir(parents=True)
    (tmp_path / "out" / "models" / "resnet18.onnx").touch()
    address = {"type": "remote_download", "url": "https://example.org/net.onnx", "library": "onnx"}
    result = of_model(tmp_path, **address)
    assert result.value is not None
    assert result.value["models"][0]["path"] == "out/models/resnet18.onnx"


def test_a_size_that_is_no_number_is_open(tmp_path: Path) -> None:
    result = of_model(tmp_path, layers={"input": [None, 3, -1, "width"]}, dtype="complex64")
    assert result.value is not None
    assert result.value["models"][0]["inputs"] == [{"shape": ["batch", 3, "size2", "width"]}]
    assert "there is no type 'complex64'" in entry(result, "$.models[0].dtype").words


def test_names_differ_and_are_allowed(tmp_path: Path) -> None:
    one = model(name="a/b é", dll_libraries=[], export_dlls=False)
    found = models_of({"models": [one, one], "runs_no": 1}, tmp_path)
    assert [item["name"] for item in found] == ["a_b__", "a_b__-2"]


def test_skipped_models_stay_and_are_left_out(tmp_path: Path) -> None:
    result = of_model(tmp_path, skip_analysis=True)
    assert result.value is not None
    assert result.value["models"][0]["skip_analysis"] is True
    assert not result.runnable


# --- Libraries and conversions ---


@pytest.mark.parametrize(
    ("name", "source", "via"),
    [
        ("tf_to_tflite", "net.pb", ["savedmodel-tflite"]),
        ("tf_to_keras", "net.pb", ["savedmodel-onnx-tf2onnx", "onnx-keras"]),
        ("tf_to_torch", "net.pb", ["savedmodel-onnx-tf2onnx", "onnx2torch"]),
        ("torch_to_tf", "net.pt", ["torch-onnx-script", "onnx-keras", "keras-savedmodel"]),
        ("torch_to_tflite", "net.pt", ["torch-onnx-script", "onnx-keras", "keras-tflite"]),
        ("torch_to_keras", "net.pt", ["torch-onnx-script", "onnx-keras"]),
        ("keras_library_to_torch", "keras.applications.VGG16", ["keras-onnx-tf2onnx", "onnx2torch"]),
        (
            "keras_library_to_tf",
            "keras.applications.VGG16",
            ["keras-onnx-tf2onnx", "onnx2torch", "torch-onnx-script", "onnx-keras", "keras-savedmodel"],
        ),
        ("keras_library_to_tflite", "keras.applications.VGG16", ["keras-tflite"]),
        ("keras_to_torch", "net.h5", ["keras-onnx-tf2onnx", "onnx2torch"]),
        ("tflite_to_keras", "net.tflite", ["tflite-onnx-tf2onnx", "onnx-keras"]),
        ("tflite_to_torch", "net.tflite", ["tflite-onnx-tf2onnx", "onnx2torch"]),
        ("tflite_to_tf", "net.tflite", ["tflite-onnx-tf2onnx", "onnx-keras", "keras-savedmodel"]),
        ("onnx_to_torch", "net.onnx", ["onnx2torch"]),
    ],
)
def test_conversions(name: str, source: str, via: list[str], tmp_path: Path) -> None:
    result = of_model(tmp_path, dll_libraries=[library(name, model=source, opset=None)])
    assert result.value is not None
    assert result.config is not None
    check_converters(result.config)
    found = result.value["models"][1]["conversions"][0]
    assert found["via"] == via
    quantized = [step for step, options in found.get("options", {}).items() if "quantize" in options]
    assert quantized == [step for step in via if step.endswith("-tflite")]
    off = of_model(tmp_path, dll_libraries=[library(f"noop_{name}", model=source)])
    assert off.config is not None
    assert not off.config.models[1].conversions[0].enabled
    assert off.config.models[1].skip_analysis


def test_conversions_of_the_model_itself_belong_to_it(tmp_path: Path) -> None:
    entries = [torch_library("torch_to_keras", opset=9), torch_library("torch_to_keras", opset=None)]
    result = of_model(tmp_path, dll_libraries=entries)
    assert result.value is not None
    (found,) = result.value["models"]
    exporter = [item["options"]["torch-onnx-script"] for item in found["conversions"]]
    assert exporter == [{"opset": 9}, {"opset": 11}], "the model's own opset is the default"


def test_opsets_that_no_converter_writes_are_refused(tmp_path: Path) -> None:
    result = of_model(tmp_path, dll_libraries=[torch_library("torch_to_keras", opset=5)])
    assert entry(result, "$.models[0].dll_libraries[0].opset").outcome is KeyOutcome.REFUSED


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (library("caffe_to_torch"), "there is no format 'caffe'"),
        (library("torch_to_keras"), "it reads torch, and keras.applications:ResNet50V2"),
        (torch_library("torch_to_torch"), "converts torch to itself"),
        (torch_library("torch", model="eval(x)"), "expressions aren't evaluated"),
        (library("keras", model=None, dependency=None), "no `model`"),
        (library("keras", weights_url="https://example.org/w.h5"), "weights aren't downloaded"),
    ],
)
def test_libraries_that_cant_be_had(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    result = of_model(tmp_path, dll_libraries=[given])
    found = entry(result, "$.models[0].dll_libraries[0]")
    assert found.outcome is KeyOutcome.REFUSED
    assert words in found.words
    off = of_model(tmp_path, dll_libraries=[given | {"library": f"noop_{given['library']}"}])
    found = entry(off, "$.models[0].dll_libraries[0]")
    assert found.outcome is KeyOutcome.IGNORED
    assert words in found.words


def test_weights_of_a_file(tmp_path: Path) -> None:
    given = library("keras", weights_url="https://example.org/w.h5", weights_file="/weights/w.h5")
    result = of_model(tmp_path, dll_libraries=[given])
    assert result.value is not None
    found = result.value["models"][1]
    assert found["weights"] == "weights/w.h5"
    assert found["kwargs"] == {"weights": None}
    assert entry(result, "$.models[0].dll_libraries[0].weights_url").outcome is KeyOutcome.IGNORED


def test_files_are_conversions_made_elsewhere_when_their_answers_have_the_same_shape(tmp_path: Path) -> None:
    same = library("tflite", model="net.tflite")
    result = of_model(tmp_path, dll_libraries=[same, library("tf", model="net.pb", output=[1, 1001])])
    assert result.value is not None
    assert [item.get("compare_with") for item in result.value["models"]] == [None, "ResNet18", None]


def test_a_network_has_one_recipe(tmp_path: Path) -> None:
    entries = [
        library("keras_library_to_torch"),
        library("keras_library_to_tflite", dependency="keras.applications.vgg16"),
    ]
    result = of_model(tmp_path, dll_libraries=entries)
    found = entry(result, "$.models[0].dll_libraries[1].dependency")
    assert found.outcome is KeyOutcome.REFUSED
    assert "'ResNet18-keras_library' has recipe keras:tf" in found.words


def test_exported_libraries(tmp_path: Path) -> None:
    exported = [torch_library("torch", format="onnx")]
    result = of_model(tmp_path, export_dlls=True, export_dll_libraries=exported)
    assert result.value is not None
    assert [item["via"] for item in result.value["models"][0]["conversions"]] == [["torch-onnx-script"]]
    result = of_model(tmp_path, export_dlls=False, export_dll_libraries=exported)
    assert result.value is not None
    assert "conversions" not in result.value["models"][0]
    assert entry(result, "$.models[0].export_dll_libraries").outcome is KeyOutcome.IGNORED


# --- Preprocessing ---


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("torchvision_models.densenet121", "torchvision"),
        ("keras.applications.mobilenet_v2", "keras:tf"),
        ("keras.applications.ResNet101V2", "keras:tf"),
        ("keras.applications.resnet50", "keras:caffe"),
        ("keras.applications.densenet", "keras:torch"),
        ("keras.applications.efficientnet", "raw"),
        ("keras.applications.mobilenet_v3", "raw"),
        ("mobilenet_v2.pb", "keras:torch"),
        ("InceptionV3.pb", "keras:tf"),
        ("googlenet.onnx", "raw"),
        ("densenet.onnx", "raw"),
        ("bert.onnx", "raw"),
    ],
)
def test_recipes(name: str, base: str, tmp_path: Path) -> None:
    section = repair(source_model_data={"model_name": name, "library": "onnx"})
    found = models_of(minimal(model_repair_config=section), tmp_path)[0]["recipe"]
    assert base == (found if isinstance(found, str) else found["base"])


def test_recipes_of_unknown_modules_are_refused(tmp_path: Path) -> None:
    section = repair(source_model_data={"model_name": "keras.applications.mine"})
    result = translated(minimal(model_repair_config=section), tmp_path)
    found = entry(result, "$.model_repair_config.source_model_data.model_name")
    assert found.outcome is KeyOutcome.REFUSED
    assert result.value is not None
    assert result.value["models"][0]["recipe"] == "raw"


def test_no_preprocessing(tmp_path: Path) -> None:
    found = models_of(config(preprocessing_enabled=False), tmp_path)
    assert {item["name"]: item["recipe"] for item in found[:2]} == {
        "ResNet18": "raw",
        "ResNet18-keras_library": "raw",
    }
    assert found[3]["recipe"] == {"base": "torchvision", "size": [32, 64]}, "a repair has a setting of its own"


# --- Settings ---


@pytest.mark.parametrize(
    ("key", "outcome"),
    {
        "opt_level": KeyOutcome.TRANSLATED,
        "required_pass": KeyOutcome.TRANSLATED,
        "disabled_pass": KeyOutcome.TRANSLATED,
        "quantize": KeyOutcome.REFUSED,
        "debug_enabled": KeyOutcome.TRANSLATED,
    }.items(),
)
def test_options_of_tvm(key: str, outcome: KeyOutcome, tmp_path: Path) -> None:
    assert entry(translated(config(), tmp_path), f"$.{key}").outcome is outcome
    other = translated(config(backend="libraries"), tmp_path)
    assert entry(other, f"$.{key}").outcome is KeyOutcome.IGNORED
    empty = translated(config(**{key: None}), tmp_path)
    assert entry(empty, f"$.{key}").outcome is (KeyOutcome.TRANSLATED if key == "opt_level" else KeyOutcome.IGNORED)


def test_tvm_is_a_backend_beside_the_libraries(tmp_path: Path) -> None:
    found = translated(config(), tmp_path)
    assert found.value is not None
    assert found.value["backends"] == [
        "libraries",
        {
            "name": "tvm",
            "target": "opencl",
            "setting": "O3",
            "debug_enabled": True,
            "required_pass": ["FoldConstant"],
            "disabled_pass": ["FuseOps"],
        },
    ]
    other = translated(config(backend="libraries"), tmp_path)
    assert other.value is not None
    assert other.value["backends"] == ["libraries"]
    relay = translated(config(disabled_pass=["AlterOpLayout", "FoldConstant"]), tmp_path)
    assert "AlterOpLayout isn't one" in entry(relay, "$.disabled_pass").words
    assert relay.value is not None
    assert relay.value["backends"][1]["disabled_pass"] == ["FoldConstant"]


@pytest.mark.parametrize(
    ("selected", "backend", "outcome", "target"),
    [
        ("graphics", "tvm", KeyOutcome.TRANSLATED, "opencl"),
        ("graphics", "libraries", KeyOutcome.IGNORED, None),
        ("board", "libraries", KeyOutcome.REFUSED, None),
        ("board", "tvm", KeyOutcome.REFUSED, None),
        ("cpu", "tvm", KeyOutcome.TRANSLATED, "llvm -mcpu=core-avx2"),
    ],
)
def test_devices(selected: str, backend: str, outcome: KeyOutcome, target: str | None, tmp_path: Path) -> None:
    devices = config()["devices"] | {"selected": selected}
    result = translated(config(devices=devices, backend=backend), tmp_path)
    assert entry(result, f"$.devices.{selected}").outcome is outcome
    assert result.value is not None
    assert [item["target"] for item in result.value["backends"][1:]] == ([target] if target else [])
    devices["selected"] = "none"
    result = translated(config(devices=devices), tmp_path)
    assert "there is no device 'none'" in entry(result, "$.devices.selected").words


@pytest.mark.parametrize(
    ("changes", "dataset", "refused"),
    [
        ({}, {"folder": "images/large", "labels": "none"}, None),
        ({"selected_dataset": 7}, {"zoo": "photos"}, "$.selected_dataset"),
        ({"selected_dataset": -1}, {"zoo": "photos"}, "$.selected_dataset"),
        ({"datasets": []}, {"zoo": "photos"}, "$.datasets"),
        ({"datasets": [{}, {"title": "x"}]}, {"zoo": "photos"}, "$.datasets[1]"),
    ],
)
def test_datasets(changes: dict[str, Any], dataset: dict[str, Any], refused: str | None, tmp_path: Path) -> None:
    result = translated(config(**changes), tmp_path)
    assert result.value is not None
    assert result.value["dataset"] == dataset
    if refused is not None:
        assert entry(result, refused).outcome is KeyOutcome.REFUSED


def test_stages(tmp_path: Path) -> None:
    off = dict.fromkeys(("build", "execute", "build_dlls", "execute_dlls", "evaluate"), False)
    result = of_model(tmp_path, **off | {"build_dlls": True})
    assert result.value is not None
    assert result.value["stages"] == {"build": True, "convert": True, "execute": False, "evaluate": False}
    both = [model(**off), model()]
    result = translated({"models": both, "runs_no": 1}, tmp_path)
    assert result.value is not None
    assert all(result.value["stages"].values())
    assert entry(result, "$.models[0].execute").outcome is KeyOutcome.REFUSED
    assert entry(result, "$.models[1].execute").outcome is KeyOutcome.TRANSLATED


# --- Repair ---


def test_a_pair_is_compared_and_localized(tmp_path: Path) -> None:
    result = translated(minimal(), tmp_path)
    assert result.value is not None
    source, target = result.value["models"]
    assert (source["path"], target["path"], target["compare_with"]) == ("net.onnx", "other.onnx", "net.onnx")
    assert result.value["stages"]["localize"] is True
    assert entry(result, "$.model_repair_config.settings.enable_model_repair").outcome is KeyOutcome.TRANSLATED


def test_each_wish_of_a_repair_is_met_or_refused(tmp_path: Path) -> None:
    result = translated(config(), tmp_path)
    settings = [item for item in result.entries if item.path.startswith("$.model_repair_config.settings.")]
    refused = {item.path.rpartition(".")[2] for item in settings if item.outcome is KeyOutcome.REFUSED}
    assert refused == set()
    assert result.value is not None
    assert result.value["stages"]["repair"] is True
    edits = ["recipe", "inputs", "sizes", "parameters", "precision", "attributes", "operators"]
    assert result.value["repair"] == {"seconds": 600, "edits": edits}


@pytest.mark.parametrize(
    ("key", "value", "outcome", "left_out"),
    [
        ("enable_transpose", False, KeyOutcome.TRANSLATED, "transposes"),
        ("enable_transpose", True, KeyOutcome.TRANSLATED, None),
        ("align_dimension", False, KeyOutcome.TRANSLATED, "inputs"),
        ("align_dimension", True, KeyOutcome.TRANSLATED, None),
        ("enable_dim_fix", True, KeyOutcome.TRANSLATED, None),
        ("enable_dim_fix", False, KeyOutcome.TRANSLATED, "sizes"),
        ("clear_multiple_outputs", True, KeyOutcome.TRANSLATED, None),
        ("clear_multiple_outputs", False, KeyOutcome.TRANSLATED, "outputs"),
        ("continue_repair_when_image_fixed", False, KeyOutcome.REFUSED, None),
        ("continue_repair_when_image_fixed", True, KeyOutcome.TRANSLATED, None),
    ],
)
def test_a_switch_of_a_repair(
    key: str, value: bool, outcome: KeyOutcome, left_out: str | None, tmp_path: Path
) -> None:
    section = repair()
    section["settings"] = {"enable_model_repair": True, key: value}
    result = translated(minimal(model_repair_config=section), tmp_path)
    found = entry(result, f"$.model_repair_config.settings.{key}")
    assert found.outcome is outcome
    assert len(found.words) > 10
    assert result.value is not None
    edits = result.value["repair"].get("edits")
    assert (edits is None) == (left_out is None)
    assert edits is None or left_out not in edits


def test_the_analysis_of_layers(tmp_path: Path) -> None:
    result = translated(config(), tmp_path)
    assert result.value is not None
    assert "localize" not in result.value
    for key in ("enable_layer_analysis", "similar_sample", "dissimilar_sample", "no_of_layer_iterations"):
        found = entry(result, f"$.model_repair_config.settings.{key}")
        assert (found.outcome, found.words) == (
            KeyOutcome.IGNORED,
            "not taken over: localization names the layers at fault",
        )


def test_a_pair_that_isnt_repaired_is_left_out(tmp_path: Path) -> None:
    section = repair()
    section["settings"] |= {"enable_model_repair": False}
    result = translated(config(model_repair_config=section), tmp_path)
    assert result.value is not None
    assert [item["skip_analysis"] for item in result.value["models"][-2:]] == [True, True]
    assert "localize" not in result.value["stages"]


@pytest.mark.parametrize("key", ["source_rel_path", "target_rel_path"])
def test_half_a_pair(key: str, tmp_path: Path) -> None:
    result = translated(minimal(model_repair_config=repair(**{key: None})), tmp_path)
    assert result.value is None
    assert entry(result, f"$.model_repair_config.{key}").outcome is KeyOutcome.REFUSED


def test_names_are_new_fit_and_take_no_longer_the_more_there_are() -> None:
    names = ModelNames()
    assert [names.new("net"), names.new("net"), names.new("net-2"), names.new("net")] == [
        "net", "net-2", "net-2-2", "net-3",
    ]  # fmt: skip
    assert {len(names.new("x" * 300)) for _ in range(3)} <= set(range(101))
    started = time.process_time()
    assert len({names.new("many") for _ in range(30_000)}) == 30_000
    assert time.process_time() - started < 3


@pytest.mark.parametrize("suffix", ["", "_final"])
def test_files_that_its_own_build_step_writes_are_the_audits_conversions(suffix: str, tmp_path: Path) -> None:
    """Its quick demo: a frozen graph, converted to TFLite by the build step, then repaired by the files' names."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "net.pb").write_bytes(b"")
    network = library("tf_to_tflite", dependency="net.pb", model="/models/net.pb", load="local")
    demo = model(
        name="MobileNetV2", url="/models/net.pb", model="net.pb", type="remote", library="tf", dll_libraries=[network]
    )
    section = repair(
        source_rel_path="/models/MobileNetV2_tf.onnx",
        target_rel_path=f"/models/MobileNetV2_tf_to_tflite{suffix}.onnx",
    )
    result = translated(minimal(models=[demo], model_repair_config=section), tmp_path)
    for side, words in (("source", "model 'MobileNetV2'"), ("target", "its conversion tf_to_tflite")):
        found = entry(result, f"$.model_repair_config.{side}_rel_path")
        assert found.outcome is KeyOutcome.TRANSLATED
        assert words in found.words
    assert result.value is not None
    assert (result.value["stages"]["localize"], result.value["stages"]["repair"]) == (True, True)
    assert not any(str(item.get("path", "")).endswith(".onnx") for item in result.value["models"])
