"""`conrepair config`, and running a configuration of the older form as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from documents import repair_in, rows_in
from legacy_configs import config, minimal, model
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config, read_json
from conrepair.application.config.schema import json_schema

DATA = {"datasets": [{"dataset_path_relative": "/photos"}], "selected_dataset": 0}


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def save_net(path: Path, scale: float) -> None:
    """A 1x1 convolution and a mean: float32 [1, 3, 8, 8] to [1, 4]."""
    weights = np.random.default_rng(0).normal(size=(4, 3, 1, 1)).astype(np.float32) * np.float32(scale)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("ReduceMean", ["c"], ["y"], axes=[2, 3], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def save_photos(folder: Path, name: str = "photos") -> None:
    (folder / name).mkdir(parents=True)
    for index in range(3):
        pixels = np.random.default_rng(index).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(folder / name / f"{index}.png")


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A folder with two networks that differ, and photos."""
    save_net(tmp_path / "net.onnx", 1.0)
    save_net(tmp_path / "other.onnx", 1.1)
    save_photos(tmp_path)
    return write(tmp_path / "old.json", minimal(**DATA))


def test_running_an_older_configuration(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(pair)]) == 0, "its faulty target is repaired"
    printed = capsys.readouterr()
    assert "faulty" in printed.out
    assert "old.json is a configuration of ConRepAIr" in printed.err
    assert "translated: $.model_repair_config.settings.enable_model_repair: faulty layers" in printed.err
    assert "translated: $.model_repair_config.source_rel_path: model 'net.onnx'" in printed.err
    whole = pair.parent / "generated" / "old"
    assert [row["name"] for row in rows_in(whole)] == ["net.onnx/source", "other.onnx/source"]
    folder = whole / "repair" / "other.onnx" / "source"
    assert repair_in(whole)["mended"]
    sides = (onnx.load(path).graph.initializer for path in (pair.parent / "net.onnx", folder / "repaired.onnx"))
    np.testing.assert_array_equal(*(numpy_helper.to_array(weights) for (weights,) in sides))
    assert main(["run", str(pair), "-q"]) == 0
    quiet = capsys.readouterr().err
    assert "translated: " not in quiet


def test_nothing_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = model(model="f(x)", dll_libraries=[], export_dlls=False)
    old = write(tmp_path / "old.json", {"models": [broken], "backend": "tvm", "quantize": True})
    assert main(["run", str(old)]) == 2
    printed = capsys.readouterr().err
    assert "nothing in this ConRepAIr configuration can be run: it has no model that can be had" in printed
    assert "$.models[0].model: 'f(x)' is a Python expression" in printed
    assert "$.quantize: TVM doesn't quantize any more" in printed
    assert "Traceback" not in printed
    assert main(["config", "migrate", str(old), "-o", str(tmp_path / "new.json")]) == 2
    assert not (tmp_path / "new.json").exists()
    write(old, {"models": [model(skip_analysis=True)], "runs_no": 1})
    assert main(["run", str(old)]) == 2
    assert "every model has skip_analysis" in capsys.readouterr().err


def test_migrating(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = pair.with_name("new.json")
    assert main(["config", "migrate", str(pair), "-o", str(new)]) == 0
    printed = capsys.readouterr().out
    assert f"{new}: written from {pair}" in printed
    assert "translated: $.model_repair_config.settings.enable_model_repair" in printed
    assert parse_config(read_json(new), "the file").models[0].path == "net.onnx"
    before = new.read_bytes()
    assert main(["config", "migrate", str(pair), "-o", str(new)]) == 2
    assert "--force" in capsys.readouterr().err
    assert new.read_bytes() == before
    assert main(["config", "migrate", str(pair), "-o", str(new), "--force", "-f", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {item["outcome"] for item in report["keys"]} >= {"translated"}
    assert main(["run", str(new), "-q"]) == 0


def test_paths_start_at_the_new_folder(pair: Path) -> None:
    new = pair.parent / "a" / "b" / "new.json"
    main(["config", "migrate", str(pair), "-o", str(new)])
    migrated = parse_config(read_json(new), "the file")
    assert [item.path for item in migrated.models] == ["../../net.onnx", "../../other.onnx"]
    assert migrated.dataset.folder == "../../photos"


def test_all_is_done(tmp_path: Path) -> None:
    save_net(tmp_path / "net.onnx", 1.0)
    save_photos(tmp_path)
    plain = {"name": "net", "type": "remote", "url": "/net.onnx", "library": "onnx", "dll_libraries": []}
    old = write(tmp_path / "old.json", {"models": [plain], "backend": "libraries", "runs_no": 1} | DATA)
    assert main(["config", "migrate", str(old), "-o", str(tmp_path / "new.json")]) == 0
    assert main(["config", "check", str(old)]) == 0


@pytest.mark.parametrize("output", ["old.json", "."])
def test_places_that_arent_written_to(pair: Path, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pair.parent)
    before = pair.read_bytes()
    assert main(["config", "migrate", "old.json", "-o", output, "--force"]) == 2
    assert main(["config", "migrate", "old.json"]) == 2
    assert pair.read_bytes() == before


def test_the_new_form_isnt_migrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = write(tmp_path / "new.json", {"models": [{"name": "a", "path": "a.onnx"}]})
    assert main(["config", "migrate", str(new), "-o", str(tmp_path / "x.json")]) == 2
    assert "is a configuration of conrepair already" in capsys.readouterr().err


def test_checking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_net(tmp_path / "a.onnx", 1.0)
    drawn = {"dataset": {"synthetic": {}}}
    file = write(tmp_path / "new.json", {"models": [{"name": "a", "path": "a.onnx"}]} | drawn)
    assert main(["config", "check", str(file)]) == 0
    assert "a configuration that can be run; models: 1 of 1" in capsys.readouterr().out
    write(file, {"models": [{"name": "a", "path": "a.onnx", "conversions": [{"via": ["onnx2torhc"]}]}]})
    assert main(["config", "check", str(file)]) == 2
    assert "did you mean 'onnx2torch'" in capsys.readouterr().err
    write(file, {"models": [{"name": "a", "path": "a.onnx", "skip_analysis": True}]})
    assert main(["config", "check", str(file)]) == 2
    write(file, config())
    assert main(["config", "check", str(file)]) == 2
    printed = capsys.readouterr()
    assert "translated: $.models[0]" in printed.out
    assert "model 'net.onnx'.path: " in printed.err
    assert "images/large doesn't exist" in printed.err
    save_photos(tmp_path, "images/large")
    for name in ("net.tflite", "models/net.onnx", "models/converted/net.onnx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        save_net(tmp_path / name, 1.0)
    assert main(["config", "check", str(file)]) == 1
    assert "a configuration of ConRepAIr that can be run; models: 5 of 5" in capsys.readouterr().out
    write(file, config(runs_no="many"))
    assert main(["config", "check", str(file)]) == 2
    assert "$.runs_no: " in capsys.readouterr().err


def test_keys_that_stand_twice(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The older tool took the last one; so do we, and say it. In our own form it's a mistake."""
    text = pair.read_text(encoding="utf-8")
    pair.write_text('{"runs_no": 2, "runs_no": 1, ' + text[1:], encoding="utf-8")
    assert main(["config", "check", str(pair)]) == 0
    printed = capsys.readouterr().out
    assert "$..runs_no: the key stands twice" in printed
    assert "translated: $.runs_no: one run" in printed
    pair.write_text('{"models": [{"name": "a", "path": "x", "name": "b"}]}', encoding="utf-8")
    assert main(["config", "check", str(pair)]) == 2
    assert "'name' stands twice" in capsys.readouterr().err


def test_paths_that_no_file_system_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("/" + "x" * 5000 + ".onnx", "/a\u0000b.onnx"):
        section = {"source_rel_path": name, "target_rel_path": name, "settings": {"enable_model_repair": True}}
        old = write(tmp_path / "old.json", minimal(model_repair_config=section))
        assert main(["config", "check", str(old)]) == 2
        shown = capsys.readouterr().err
        assert "Traceback" not in shown
        assert "{source_rel_path, target_rel_path}: /" in shown
        assert "is no path" in shown


def test_the_schema_is_printed_or_written_for_editors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()
    config = {"$schema": "conrepair.schema.json", "name": "audit", "models": [{"name": "net", "path": "net.onnx"}]}
    save_net(tmp_path / "net.onnx", 1.0)
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main(["config", "check", "config.json"]) == 0
    write = "`conrepair config schema -o conrepair.schema.json` writes it"
    told = capsys.readouterr().out
    assert f"note: there is no file conrepair.schema.json, which $schema names for editors: {write}" in told
    assert main(["config", "schema", "-o", "conrepair.schema.json"]) == 0
    assert '`"$schema": "conrepair.schema.json"`' in capsys.readouterr().out
    assert json.loads((tmp_path / "conrepair.schema.json").read_text()) == json_schema()
    assert main(["config", "check", "config.json"]) == 0
    assert "note: " not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check"], "config check: name the configuration's file"),
        (["migrate"], "config migrate: name the configuration's file"),
        (["schema", "config.json"], "config schema takes no configuration"),
    ],
)
def test_what_an_action_takes(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", *words]) == 2
    assert said in capsys.readouterr().err
