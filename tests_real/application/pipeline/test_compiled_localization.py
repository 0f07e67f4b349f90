"""Builds that are looked into: in audits, and by hand."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import compiled
import numpy as np
import pytest
import rewritten_networks as networks
import small_models as small
import torch
from documents import document, localized_in, rows_in

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.pipeline.stages.repair import rows_to_repair
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.summary import summary_text
from conrepair.formats.tvm.capture import KERNELS
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.verdicts.evaluate.verdict import Verdict

ANTIALIASED = 'p4 = Resize <antialias = 1, mode = "linear"> (p, , scales)'
SCALES = np.array([1, 1, 0.5, 0.5], np.float32)


def test_a_build_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = compiled.mobile(tmp_path, ANTIALIASED, scales=SCALES)
    folder, out = compiled.built(model, tmp_path / "build"), tmp_path / "found"
    assert main(["localize", model.path, str(folder), "-q", "--samples", "3", "-o", str(out)]) == 1
    printed = capsys.readouterr().out
    assert "compilation at" in printed
    assert "Resize `p4`" in " ".join(printed.split())
    (step,) = document(out)["rows"][-1]["localized"]["steps"]
    (fault,) = step["localization"]["faults"]
    assert fault["kind"] == "compilation"
    assert "p4" in fault["target_layers"]
    compared = step["compared"]
    assert compared["target"]["path"] == model.path
    assert (compared["build"], compared["build_sha256"]) == (str(folder), sha256_of(folder))
    assert main(["localize", model.path, str(folder), "-q", "--intermediate", model.path, "-o", str(out)]) == 2
    assert "leave out --intermediate" in capsys.readouterr().err
    (folder / "relax.py").write_text("# other")
    assert main(["localize", model.path, str(folder), "-q", "-o", str(out)]) == 3
    assert "relax.py changed" in capsys.readouterr().err


@pytest.mark.slow
def test_an_audit_looks_into_builds(tmp_path: Path) -> None:
    """The Keras model is compiled by way of ONNX, and compared with itself; kernels' results are kept."""
    compiled.mobile(tmp_path, ANTIALIASED, scales=SCALES)
    small.keras_convnet().save(tmp_path / "net.keras")
    value = {
        "output": str(tmp_path / "generated"),
        "dataset": {"synthetic": {"samples": 10}},
        "batch_size": 1,
        "stages": {"localize": True},
        "localize": {"when": "always", "samples": 2},
        "backends": [
            "libraries",
            {"name": "tvm", "debug_enabled": True, "debug_samples": 2, "label": "seen"},
        ],
        "models": [{"name": "mobile", "path": "mobile.onnx"}, {"name": "keras", "path": "net.keras"}],
    }
    with ProgressDisplay(quiet=True) as display:
        result = run_audit(parse_config(value, "test"), tmp_path, display)
    rows = {(row.model, row.backend): row for row in result.rows}
    right, wrong = rows["keras", "seen"], rows["mobile", "seen"]
    assert right.localized.result is not None
    assert right.localized.result.verdict is Verdict.EQUIVALENT, right.localized.result.faults
    assert len(right.localized.result.layers) > 3
    assert wrong.localized.result is not None
    assert [fault.kind.value for fault in wrong.localized.result.faults] == ["compilation"]
    assert wrong.ran.run is not None
    assert wrong.ran.run.count == 10
    assert json.loads((wrong.ran.run.folder / KERNELS).read_text())["batches"] == 2
    write_audit(result, tmp_path / "store")
    assert (result.folder / "localization" / "mobile" / "source@seen" / "layers.csv").is_file()


def test_a_build_of_a_wrong_conversion_is_explained_by_the_conversion(tmp_path: Path) -> None:
    """Beside its model it's right; what the row compares is the source and what ran."""
    source = networks.residual_blocks(tmp_path / "source.onnx", 2)
    wrong = networks.damaged(source, tmp_path / "wrong.onnx", ["two1"])
    value = {
        "output": str(tmp_path / "generated"),
        "dataset": {"synthetic": {"samples": 4}},
        "batch_size": 1,
        "stages": {"localize": True},
        "localize": {"samples": 2},
        "backends": ["libraries", {"name": "tvm", "label": "seen"}],
        "models": [
            {"name": "source", "path": "source.onnx"},
            {"name": "wrong", "path": "wrong.onnx", "compare_with": "source"},
        ],
    }
    with ProgressDisplay(quiet=True) as display:
        result = run_audit(parse_config(value, "test"), tmp_path, display)
    write_audit(result, tmp_path / "store")
    rows = {(row.model, row.backend): row for row in result.rows}
    row = rows["wrong", "seen"]
    assert row.verdict is Verdict.FAULTY
    assert row.localized.result is not None
    assert row.localized.result.verdict is Verdict.FAULTY
    assert [fault.source_tensor for fault in row.localized.result.faults] == ["c1"]
    assert (row.localized.steps[0].name, row.localized.steps[0].localization.verdict) == (
        "conversion",
        Verdict.FAULTY,
    )
    assert row.localized.steps[1].name == "build"
    assert not row.localized.steps[1].localization.faults
    folder = result.folder / "localization" / "wrong" / "source@seen"
    assert (folder / "layers.csv").is_file()
    assert (folder / "build" / "layers.csv").is_file()
    told = next(item for item in rows_in(result.folder) if (item["model"], item["backend"]) == ("wrong", "seen"))
    whole, build = (step["compared"] for step in told["localized"]["steps"])
    hashes = [sha256_of(path) for path in (source, wrong)]
    assert [whole[side]["sha256"] for side in ("source", "target")] == hashes
    assert (localized_in(told)["verdict"], whole["build"]) == ("faulty", "")
    assert [build[side]["sha256"] for side in ("source", "target")] == [hashes[1], hashes[1]]
    assert row.ran.build is not None
    assert build["build"] == str(row.ran.build.folder)
    assert rows_to_repair(result.rows) == [result.rows.index(rows["wrong", "libraries"])]


def test_a_repaired_file_is_judged_on_every_backend(tmp_path: Path) -> None:
    """What an exporter lost is put back once; what TVM's importer loses, no pass does."""
    small.export_pt2(Averages().eval(), [torch.randn(2, 3, 8, 8)], tmp_path / "net.pt2")
    value = {
        "output": str(tmp_path / "generated"),
        "dataset": {"synthetic": {"samples": 4}},
        "stages": {"localize": True, "repair": True},
        "repair": {"advice_seconds": 0},
        "localize": {"samples": 2},
        "backends": ["libraries", "onnxruntime", {"name": "tvm", "disabled_pass": list(compiled.IDLE)}],
        "models": [{"name": "net", "path": "net.pt2", "conversions": [{"via": ["torch-onnx-script"]}]}],
    }
    with ProgressDisplay(quiet=True) as display:
        result = run_audit(parse_config(value, "test"), tmp_path, display)
    rows = {(row.conversion, row.backend): row for row in result.rows}
    for backend in ("libraries", "onnxruntime"):
        row = rows["torch-onnx-script", backend]
        assert (row.verdict, row.repaired.is_right) == (Verdict.FAULTY, True), row.repaired
        assert result.exit_code_of(row) == 0
    assert [row.backend for row in result.rows if row.repaired.result and row.conversion] == ["libraries"]
    built = next(row for row in result.rows if row.backend.startswith("tvm") and not row.conversion)
    assert built.repaired.result is not None
    assert not built.repaired.is_right
    assert "TVM's importer (relax.frontend.torch)" in str(built.repaired.result.undone)
    assert result.exit_code == 1
    assert "faulty, repaired" in summary_text(result)


def test_a_repaired_file_is_judged_where_it_must_be_converted_first(tmp_path: Path) -> None:
    """TVM takes a Keras model by way of ONNX: what was repaired goes that way, too, and the audit ends with 0."""
    import keras

    source = small.keras_convnet()
    source.save(tmp_path / "net.keras")
    wrong = keras.models.load_model(tmp_path / "net.keras")
    layer = wrong.get_layer("logits")
    layer.set_weights([values * np.float32(1.5) for values in layer.get_weights()])
    wrong.save(tmp_path / "wrong.keras")
    value = {
        "output": str(tmp_path / "generated"),
        "dataset": {"synthetic": {"samples": 4}},
        "batch_size": 1,
        "stages": {"localize": True, "repair": True},
        "repair": {"advice_seconds": 0},
        "localize": {"samples": 2},
        "backends": ["libraries", {"name": "tvm", "setting": "O0", "label": "compiled"}],
        "models": [
            {"name": "net", "path": "net.keras"},
            {"name": "wrong", "path": "wrong.keras", "compare_with": "net"},
        ],
    }
    with ProgressDisplay(quiet=True) as display:
        result = run_audit(parse_config(value, "test"), tmp_path, display)
    rows = {row.backend: row for row in result.rows if row.model == "wrong"}
    compiled_row = rows["compiled"]
    assert compiled_row.ran.build is not None
    assert compiled_row.ran.build.via, "it's converted for the compiler"
    assert [row.verdict for row in rows.values()] == [Verdict.FAULTY] * 2
    assert [row.repaired.is_right for row in rows.values()] == [True, True], compiled_row.repaired
    assert result.exit_code == 0
    assert not [note for note in result.notes if "repaired" in note]


def test_the_command_that_build_names_next_looks_into_a_pt2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small.export_pt2(Averages().eval(), [torch.randn(2, 3, 8, 8)], tmp_path / "net.pt2")
    assert main(["build", "net.pt2", "-o", "build", "-q"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("next: ")]
    program, *command = shlex.split(line.split("`")[1])
    assert (program, command[0]) == ("conrepair", "localize")
    assert main([*command, "-q", "--samples", "2"]) == 1
    assert "avg_pool2d" in capsys.readouterr().out


class Averages(torch.nn.Module):
    """An average with a divisor of its own, which exporters and importers drop."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.linear = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(36, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = torch.nn.functional.avg_pool2d(torch.relu(self.conv(x)), 2, divisor_override=3)
        result: torch.Tensor = self.linear(pooled.flatten(1))
        return result


def test_execute_keeps_what_kernels_compute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, out = small.onnx_convnet(tmp_path / "net.onnx"), tmp_path / "run"
    command = ["execute", str(net), "-q", "--samples", "3", "-o", str(out), "--debug"]
    assert main(command) == 2
    assert "which only --backend tvm has" in capsys.readouterr().err
    assert main([*command, "--backend", "tvm"]) == 0
    assert "kernels, " in capsys.readouterr().out
    record = json.loads((out / KERNELS).read_text())
    assert record["batches"] == 3
    last = record["kernels"][-1]["results"][0]
    assert last["tensors"] == ["probabilities"]
    np.testing.assert_array_equal(np.load(out / last["file"])[:, 0], np.load(out / "output_0.npy"))
