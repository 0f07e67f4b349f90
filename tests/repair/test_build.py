"""Builds that are wrong, and the smallest change of the build that mends them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import compiled
import numpy as np
import pytest

from conrepair.backends.tvm.options import read_options
from conrepair.backends.tvm.runnable import TvmRunnable
from conrepair.cli import main
from conrepair.data.feeds import DataReference
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.localize.models import Subject
from conrepair.localize.opening import Build
from conrepair.localize.options import Options
from conrepair.repair.build import repair_build
from conrepair.repair.build_change import BuildChange, changed_options, changes_for
from conrepair.repair.repair import RepairOptions
from conrepair.repair.result import RepairResult
from conrepair.runtime.files import sha256_of
from conrepair.runtime.journal import Journal, blame, end_early


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule for CPUs as it was: a padding's ends stayed unwritten."""
    from conrepair.backends.tvm import cpu_rule

    def without_ends(block: Any) -> list[int]:
        return [{9: 8}.get(int(item.dom.extent), int(item.dom.extent)) for item in block.iter_vars]

    monkeypatch.setattr(cpu_rule, "_extents", without_ends)


def repaired(model: Model, build: Path, folder: Path, journal: Journal | None = None, **options: Any) -> RepairResult:
    specs = TvmRunnable(build).inputs
    data = DataReference("synthetic", 6, samples=specs)
    source = Subject(model, framework("onnx").load(model).inputs, data, None)
    target = Subject(model, specs, data, None, (), Build(str(build), sha256_of(build)))
    return repair_build(source, target, folder, RepairOptions(Options(samples=2), unseen=4, **options), journal)


def options_of(build: str) -> dict[str, Any]:
    return json.loads((Path(build) / "build.json").read_text())["options"]


def test_a_wrong_schedule_is_left_out_where_it_is_wrong(tmp_path: Path, unwritten: None) -> None:
    model = compiled.mobile(tmp_path)
    build = compiled.built(model, tmp_path / "build", "O3")
    hashed = sha256_of(build)
    found = repaired(model, build, tmp_path / "out")
    assert len(found.before.faults) == 1
    assert found.mended
    assert found.tried == 2, "the smallest change comes first, after none"
    assert found.model is not None
    options = options_of(found.model.path)
    assert options["unscheduled"] == ["b", "b6", "bp"]
    assert options["unfused"] == options["disabled_pass"] == []
    assert options["setting"] == "O3"
    assert found.unseen_after.samples == 4
    assert found.unseen_after.error < 1e-5
    record = json.loads((Path(found.model.path) / "build.json").read_text())
    assert record["repair"]["change"]["unscheduled"] == ["b", "b6", "bp"]
    assert json.loads((tmp_path / "out" / "patch.json").read_text())["build"] == record["repair"]["change"]
    assert sha256_of(build) == hashed
    # All other kernels are what they were.
    script = (Path(found.model.path) / "relax.py").read_text()
    assert script.count("T.parallel") > 5


def test_a_search_goes_on_where_another_was_stopped(
    tmp_path: Path, unwritten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First it's asked to end at once; then its process dies of the second candidate."""
    model, kept = compiled.mobile(tmp_path), tmp_path / "kept"
    build = compiled.built(model, tmp_path / "build", "O3")
    kept.mkdir()
    end_early(kept)
    found = repaired(model, build, tmp_path / "out", Journal(kept))
    assert (found.interrupted, found.tried, found.model) == (True, 0, None)
    end_early(kept, wanted=False)

    notes: list[str] = []

    def die_at_the_second(build: Path, change: BuildChange) -> Any:
        notes.append((kept / "tried").read_text())
        if len(notes) == 2:
            raise KeyboardInterrupt
        return changed_options(build, change)

    with monkeypatch.context() as dying:
        dying.setattr("conrepair.repair.build.changed_options", die_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            repaired(model, build, tmp_path / "out", Journal(kept))
    (kept / "tried").write_text(notes[-1])  # what a process that dies doesn't take back
    assert blame(kept)
    found = repaired(model, build, tmp_path / "out", Journal(kept))
    assert found.mended
    assert found.recalled == 2
    assert found.tried > found.recalled
    assert found.model is not None
    assert options_of(found.model.path)["unscheduled"] == []


def test_what_no_pass_brought_in_is_left(tmp_path: Path) -> None:
    between = 'p4 = Resize <antialias = 1, mode = "linear"> (p, , scales)'
    model = compiled.mobile(tmp_path, between, scales=np.array([1, 1, 0.5, 0.5], np.float32))
    build = compiled.built(model, tmp_path / "build", "O0")
    found = repaired(model, build, tmp_path / "out")
    assert not found.mended
    assert found.model is None
    assert found.edits == ()
    assert found.tried == len(found.effects) > 0
    assert all("1 now" in effect for effect in found.effects), found.effects


@pytest.mark.parametrize(("setting", "first"), [("O3", "unscheduled"), ("O2", "unfused"), ("O0", "disabled_pass")])
def test_small_changes_come_first(setting: str, first: str) -> None:
    options = read_options({"setting": setting})
    changes = list(changes_for(options, ["a", "b"]))
    assert changes[0] == BuildChange()
    assert getattr(changes[1], first)
    sizes = [bool(change.disabled_pass) for change in changes]
    assert sizes == sorted(sizes)
    assert "LegalizeOps" not in {name for change in changes for name in change.disabled_pass}
    for change in changes:
        read_options(vars(change.applied(options)))  # none asks for what there isn't
    assert BuildChange(unfused=("a", "b")).without(["b"]) == BuildChange(unfused=("a",))


def test_a_build_by_hand(tmp_path: Path, unwritten: None, capsys: pytest.CaptureFixture[str]) -> None:
    """The command's worker has the rule as it is now."""
    model = compiled.mobile(tmp_path)
    build, out = compiled.built(model, tmp_path / "build", "O3"), tmp_path / "out"
    assert main(["repair", model.path, str(build), "-q", "--samples", "12", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "repaired: 1 found, 0 left" in printed
    assert "on 4 samples" in printed
    assert "built again, with nothing changed" in printed
    assert options_of(str(out / "repaired")) == options_of(str(build))
    patch, again = str(out / "patch.json"), tmp_path / "again"
    assert main(["repair", str(build), "--apply", patch, "-o", str(again)]) == 3
    assert "name that model" in capsys.readouterr().err
    assert main(["repair", model.path, str(build), "--apply", patch, "-o", str(again)]) == 0
    assert options_of(str(again / "repaired")) == options_of(str(build))
    assert (again / "repaired" / "relax.py").read_text() == (out / "repaired" / "relax.py").read_text()
    other = main(["repair", model.path, str(out / "repaired"), "--apply", patch, "-o", str(tmp_path / "other")])
    assert other == 2
    assert "the patch is for a build whose build.json has the sha256" in capsys.readouterr().err
    assert (
        main(["repair", model.path, str(out / "repaired"), "-q", "--samples", "12", "-o", str(tmp_path / "no")]) == 0
    )
    assert "nothing to repair" in capsys.readouterr().out
    assert not (tmp_path / "no").exists()
