"""Builds that are wrong, and the smallest change of the build that fixes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import compiled
import numpy as np
import onnx
import pytest

from conrepair.application.cli import main
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.build import repair_build
from conrepair.diagnosis.repairs.build_change import BuildChange, changed_options, changes_for
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import Agreement
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.tvm.options import read_options
from conrepair.formats.tvm.runnable import TvmRunnable
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.journal import Journal, blame, end_early
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules are wrong."""
    compiled.leave_ends_unwritten(monkeypatch)


def break_pass(monkeypatch: pytest.MonkeyPatch, name: str, kernel: str, right: str, wrong: str) -> None:
    """Let a pass of TVM's write one kernel wrongly, where it makes that kernel or meets it.

    Args:
        monkeypatch: Undoes it.
        name: Of the pass.
        kernel: Its name.
        right: What that computes, as TVM's script writes it.
        wrong: What it computes instead.
    """
    import tvm
    from tvm import relax

    make = getattr(relax.transform, name)

    @tvm.transform.module_pass(opt_level=0, name=f"Wrong{name}")
    def wrongly(module: Any, _: Any) -> Any:
        module = make()(module)
        for place, function in module.functions_items():
            if place.name_hint == kernel:
                text = function.script()
                assert right in text
                module.update_func(place, tvm.script.from_source(text.replace(right, wrong)))
        return module

    monkeypatch.setattr(relax.transform, name, lambda: wrongly)


@pytest.fixture
def misfused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fusion confuses minimum with maximum in one of the kernels that it makes: that of c and c6."""
    break_pass(monkeypatch, "FuseTIR", "fused_conv2d1_maximum1_minimum1", "T.min(", "T.max(")


ANTIALIASED = 'p = Resize <antialias = 1, mode = "linear"> (c6, , scales)'
"""What TVM's importer reads wrongly."""

HALVES = np.array([1, 1, 0.5, 0.5], np.float32)


def repaired(model: Model, build: Path, folder: Path, journal: Journal | None = None, **options: Any) -> RepairResult:
    specs = TvmRunnable(build).inputs
    data = DataReference("synthetic", 6, samples=specs)
    source = FedModel(model, framework("onnx").load(model).inputs, data, None)
    target = FedModel(model, specs, data, None, (), HashedPath(str(build), sha256_of(build)))
    return repair_build(source, target, folder, RepairOptions(Options(samples=2), unseen=4, **options), journal)


def options_of(build: str) -> dict[str, Any]:
    return json.loads((Path(build) / "build.json").read_text())["options"]


def test_a_wrong_schedule_is_left_out_where_it_is_wrong(tmp_path: Path, unwritten: None) -> None:
    model = compiled.short(tmp_path)
    build = compiled.built(model, tmp_path / "build", "O3")
    hashed = sha256_of(build)
    found = repaired(model, build, tmp_path / "out")
    assert [fault.target_layers for fault in found.before.faults] == [("a", "a6", "ap")]
    assert found.mended
    assert found.tried == 4, "the smallest change comes first, after none; then it's made smaller"
    assert found.model is not None
    options = options_of(found.model.path)
    assert options["unscheduled"] == ["ap"], "one operator is enough for the kernel that it's part of"
    assert options["unfused"] == options["disabled_pass"] == []
    assert options["setting"] == "O3"
    assert found.unseen_after.samples == 4
    assert found.unseen_after.error < 1e-5
    record = json.loads((Path(found.model.path) / "build.json").read_text())
    assert record["repair"]["change"]["unscheduled"] == ["ap"]
    assert json.loads((tmp_path / "out" / "patch.json").read_text())["build"] == record["repair"]["change"]
    assert sha256_of(build) == hashed
    # All other kernels are what they were.
    script = (Path(found.model.path) / "relax.py").read_text()
    assert script.count("T.parallel") >= 2


@pytest.mark.parametrize("target", ["llvm", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_wrong_fusion_is_left_out_where_it_is_wrong(target: str, tmp_path: Path, misfused: None) -> None:
    import tvm

    if target == "cuda" and not tvm.cuda(0).exist:
        pytest.skip("there is no CUDA device here")
    model = compiled.short(tmp_path)
    build = compiled.built(model, tmp_path / "build", "O2", target=target)
    found = repaired(model, build, tmp_path / "out")
    assert [fault.target_layers for fault in found.before.faults] == [("c", "c6")]
    assert found.mended
    assert found.edits == ("no fusion of `c6`",)
    assert found.model is not None
    options = options_of(found.model.path)
    assert options["unfused"] == ["c6"]
    assert options["unscheduled"] == options["disabled_pass"] == []
    assert found.unseen_after.error < 1e-5 < found.unseen_before.error


def test_a_wrong_pass_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kernels have what it writes wrongly inside, however they're fused."""
    break_pass(monkeypatch, "FoldConstant", "maximum3", "T.max(", "T.min(")
    model = compiled.mobile(tmp_path)
    build = compiled.built(model, tmp_path / "build", "O2", disabled_pass=compiled.IDLE)
    found = repaired(model, build, tmp_path / "out")
    assert {fault.target_layers for fault in found.before.faults} == {("d", "d6"), ("e", "e6")}
    assert found.mended
    assert found.edits == ("without `FoldConstant`",)
    assert found.model is not None
    assert options_of(found.model.path)["disabled_pass"] == [*compiled.IDLE, "FoldConstant"]
    assert found.unseen_after.error < 1e-5 < found.unseen_before.error


@pytest.mark.slow  # each of both is repaired above
def test_faults_are_repaired_each_by_what_it_needs(tmp_path: Path, unwritten: None, misfused: None) -> None:
    model = compiled.short(tmp_path)
    build = compiled.built(model, tmp_path / "build", "O3")
    found = repaired(model, build, tmp_path / "out")
    assert {fault.target_layers for fault in found.before.faults} == {("a", "a6", "ap"), ("c", "c6")}
    assert found.mended
    assert found.model is not None
    options = options_of(found.model.path)
    assert (options["unscheduled"], options["unfused"], options["disabled_pass"]) == (["ap"], ["c6"], [])
    assert found.unseen_after.error < 1e-5


@pytest.mark.slow  # the next one ends so, too
def test_what_can_be_repaired_is_where_something_is_left(tmp_path: Path, misfused: None) -> None:
    """The importer's fault stays."""
    model = compiled.short(tmp_path, ANTIALIASED, scales=HALVES)
    build = compiled.built(model, tmp_path / "build", "O2", disabled_pass=compiled.IDLE)
    found = repaired(model, build, tmp_path / "out")
    assert {fault.target_layers for fault in found.before.faults} == {("p",), ("c", "c6")}
    assert [fault.target_layers for fault in found.after.faults] == [("p",)]
    assert not found.mended
    assert found.edits == ("no fusion of `c6`",)
    assert found.model is not None
    assert options_of(found.model.path)["unfused"] == ["c6"]
    assert found.unseen_after.error < found.unseen_before.error
    assert "no fusion of `c`, `c6`, `p`: 2 kernels at fault before, 1 now" in found.effects[1]


def test_the_best_is_kept_where_the_search_is_ended(
    tmp_path: Path, misfused: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the second candidate, which fixes one of two faults, is made; the next search goes on from there."""
    model, kept = compiled.short(tmp_path, ANTIALIASED, scales=HALVES), tmp_path / "kept"
    build = compiled.built(model, tmp_path / "build", "O2", disabled_pass=compiled.IDLE)

    def end_at_fusion(build: Path, change: BuildChange) -> Any:
        if change.unfused:
            end_early(kept)
        return changed_options(build, change)

    with monkeypatch.context() as ending:
        ending.setattr("conrepair.diagnosis.repairs.build.changed_options", end_at_fusion)
        found = repaired(model, build, tmp_path / "out", Journal(kept))
    assert (found.interrupted, found.tried, len(found.after.faults)) == (True, 2, 1)
    assert found.model is not None
    assert set(options_of(found.model.path)["unfused"]) == {"c", "c6", "p"}
    end_early(kept, wanted=False)
    found = repaired(model, build, tmp_path / "again", Journal(kept))
    assert (found.interrupted, found.recalled, found.edits) == (False, 1, ("no fusion of `c6`",))
    assert [fault.target_layers for fault in found.before.faults] == [("c", "c6"), ("p",)]
    assert [fault.target_layers for fault in found.after.faults] == [("p",)]
    assert not found.mended
    assert found.unseen_after.error < found.unseen_before.error


def test_what_makes_others_worse_is_undone(tmp_path: Path, unwritten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([Agreement(4, 0.1, 1), Agreement(4, 0.2, 3)])
    monkeypatch.setattr("conrepair.diagnosis.repairs.verify.agreement", lambda *_, **__: next(told))
    model = compiled.short(tmp_path)
    build = compiled.built(model, tmp_path / "build", "O3")
    found = repaired(model, build, tmp_path / "out")
    assert (found.edits, found.model, found.patch, found.mended) == ((), None, None, False)
    wanted = "undone: outputs differ by 20 % on unseen samples, 10 % before; 3 top-1 predictions differ, 1 before"
    assert found.effects[-1] == wanted
    assert found.unseen_after == found.unseen_before
    assert not list((tmp_path / "out").iterdir())


def test_a_search_goes_on_where_another_was_stopped(
    tmp_path: Path, unwritten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First it's asked to end at once; then its process dies of the second candidate."""
    model, kept = compiled.short(tmp_path), tmp_path / "kept"
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
        dying.setattr("conrepair.diagnosis.repairs.build.changed_options", die_at_the_second)
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
    model = compiled.short(tmp_path, ANTIALIASED, scales=HALVES)
    build = compiled.built(model, tmp_path / "build", "O0")
    found = repaired(model, build, tmp_path / "out")
    assert not found.mended
    assert found.model is None
    assert found.edits == ()
    assert found.tried == len(found.effects) > 0
    assert all("1 now" in effect for effect in found.effects), found.effects


def test_a_kernel_that_loses_digits_gets_a_stable_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TVM computes tanh by exponentials, whatever passes run."""
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 4] x) => (float[1, 4] y) { y = Tanh (x) }'
    path, data, out = tmp_path / "net.onnx", tmp_path / "tiny.npz", tmp_path / "out"
    onnx.save(onnx.parser.parse_model(text), path)
    np.savez(data, x=np.random.default_rng(0).normal(scale=1e-7, size=(12, 4)).astype(np.float32))
    model = Model("onnx", str(path), sha256_of(path))
    build = compiled.built(model, tmp_path / "build", "O2", disabled_pass=(*compiled.IDLE, "FoldConstant"))
    asked = ["-q", "--data", str(data), "--samples", "12", "-o"]
    assert main(["repair", str(path), str(build), *asked, str(out)]) == 0
    printed = capsys.readouterr().out
    assert "repaired: 1 fault found, 0 left" in printed
    assert "a stable form of `y`" in printed
    options = options_of(str(out / "repaired"))
    assert options == {**options_of(str(build)), "stable": ["y"]}
    assert main(["repair", str(path), str(build), "--apply", str(out / "patch.json"), "-o", str(tmp_path / "a")]) == 0
    assert options_of(str(tmp_path / "a" / "repaired")) == options
    assert main(["repair", str(path), str(out / "repaired"), *asked, str(tmp_path / "no")]) == 0
    assert "nothing to repair" in capsys.readouterr().out
    assert not (tmp_path / "no").exists()


def test_forms_come_last() -> None:
    changes = list(changes_for(read_options({"setting": "O2"}), ["a", "b"], ["b"], ["a", "b"]))
    assert changes[-2:] == [BuildChange(stable=("b",)), BuildChange(float64=("a", "b"))]
    assert changes[-3].disabled_pass
    assert "a stable form of `b`; float64 for `a`" in BuildChange(stable=("b",), float64=("a",)).in_words()


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


def test_changes_are_taken_together_and_apart() -> None:
    one, other = BuildChange(unfused=("a", "b")), BuildChange(("b",), ("b",), ("FuseOps",))
    both = one.joined(other)
    assert both == BuildChange(("b",), ("a", "b"), ("FuseOps",))
    assert both.joined(one) == both
    assert len(both.parts) == 4
    assert both.without(("unfused", "b")) == BuildChange(("b",), ("a",), ("FuseOps",))
    assert both.without(("disabled_pass", "FuseOps")) == BuildChange(("b",), ("a", "b"))


def test_a_build_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command has the rule as it is now."""
    model, out = compiled.short(tmp_path), tmp_path / "out"
    with pytest.MonkeyPatch.context() as older:
        compiled.leave_ends_unwritten(older)
        build = compiled.built(model, tmp_path / "build", "O3")
    assert main(["repair", model.path, str(build), "-q", "--samples", "12", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "repaired: 1 fault found, 0 left" in printed
    assert "Verified on 4 other random samples, which the search didn't see" in " ".join(printed.split())
    assert "built again, with nothing changed" in printed
    assert options_of(str(out / "repaired")) == options_of(str(build))
    patch, again = str(out / "patch.json"), tmp_path / "again"
    assert main(["repair", model.path, str(build), "--apply", patch, "-o", str(again)]) == 0
    assert options_of(str(again / "repaired")) == options_of(str(build))
    assert (again / "repaired" / "relax.py").read_text() == (out / "repaired" / "relax.py").read_text()
    assert main(["repair", str(build), "--apply", patch, "-o", str(tmp_path / "kept")]) == 0
    other = main(["repair", model.path, str(out / "repaired"), "--apply", patch, "-o", str(tmp_path / "other")])
    assert other == 2
    assert "the patch is for another build: its build.json has the sha256" in capsys.readouterr().err
    assert (
        main(["repair", model.path, str(out / "repaired"), "-q", "--samples", "12", "-o", str(tmp_path / "no")]) == 0
    )
    assert "nothing to repair" in capsys.readouterr().out
    assert not (tmp_path / "no").exists()
