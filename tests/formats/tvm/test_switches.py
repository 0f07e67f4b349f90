"""Each part of a build that has a name can be left out, here and with TVM alone."""

from __future__ import annotations

import functools
import json
import runpy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import small_models as small

from conrepair.formats.models.model import Model
from conrepair.formats.tvm.backend import BACKEND
from conrepair.formats.tvm.passes_run import MANDATORY, pass_of
from conrepair.formats.tvm.switches import arithmetic, switches, without
from conrepair.ground.runtime.errors import ConfigError

BEST = {"setting": "O3", "required_pass": ["FastMathTransform"], "target": "llvm -mcpu=native -fast-math-contract=1"}
FAST = {"setting": "O2", "left_out": ["FoldConstant"]}  # whose kernels would be compiled one by one


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return small.model_of("onnx", small.onnx_convnet(tmp_path_factory.mktemp("source") / "net.onnx"))


@dataclass(frozen=True)
class Built:
    record: dict[str, Any]
    answers: Any
    folder: Path


@pytest.fixture(scope="module")
def built(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Built]:
    """Makes a build once, and runs it."""

    @functools.cache
    def made(words: str) -> Built:
        options, folder = json.loads(words), tmp_path_factory.mktemp("build")
        record = BACKEND.compile(model, options, 2, folder)
        runnable = BACKEND.load(model, options | {"build": {"path": str(folder)}})
        return Built(record, runnable.run({"image": small.images(2)})["probabilities"], folder)

    return lambda options: made(json.dumps(options, sort_keys=True))


Build = Callable[[dict[str, Any]], Built]


def test_one_application_is_left_out_and_the_others_keep_their_names(built: Build) -> None:
    off = ["FuseOps#0", "s_tir.ThreadSync#1"]
    whole, without_them = built(FAST), built(without(FAST, off))
    record, changed = whole.record, without_them.record
    assert [name for name in record["applications"] if name not in off] == changed["applications"]
    assert "s_tir.ThreadSync#2" in changed["applications"]
    assert len(set(record["applications"])) == len(record["applications"])
    assert {pass_of(name) for name in record["applications"]} >= MANDATORY
    assert record["kernels"] < changed["kernels"]
    assert small.relative_l2(whole.answers, without_them.answers) < 1e-6


def test_what_a_pass_calls_is_part_of_it(built: Build) -> None:
    record = built({"setting": "O2"}).record
    assert record["applications"].count("FoldConstant#0") == 1
    assert "tirx.LowerIntrin#1" not in record["applications"]
    assert "FuseTIRInner" in record["passes_run"]
    assert "FuseTIRInner#0" not in record["applications"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FuseOp#0", "'FuseOp#0' isn't part of this build; did you mean 'FuseOps#0'"),
        ("FuseOps#1", "did you mean 'FuseOps#0'"),
        ("FastMathTransform", "isn't part of this build"),
        ("LegalizeOps#0", "models don't compile without LegalizeOps"),
        ("tirx.VectorizeLoop", "models don't compile without tirx.VectorizeLoop"),
    ],
)
def test_what_can_not_be_left_out_is_refused(model: Model, name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        BACKEND.compile(model, {"setting": "O2", "left_out": ["FoldConstant", name]}, 1, tmp_path)


def test_everything_that_is_optional_can_be_left_out_at_once(built: Build) -> None:
    best = built(BEST)
    single = [item.name for item in switches(best.record, BEST)]
    for found in (single, dict.fromkeys(map(pass_of, single))):
        options = without(BEST, found)
        bare = built(options)
        assert {pass_of(application) for application in bare.record["applications"]} == MANDATORY
        assert (options["target"], options["vectorize"]) == ("llvm", False)
        assert small.relative_l2(bare.answers, best.answers) < 1e-5
        assert switches(bare.record, options) == []


def test_switches_come_in_the_order_in_which_they_ran(built: Build) -> None:
    found = {item.name: item.sort for item in switches(built(BEST).record, BEST)}
    order = ["FastMathTransform#0", "FuseOps#0", "s_tir.LoopPartition#0", "vectorize", "tirx.UnrollLoop#0"]
    order += ["-mcpu=native", "-fast-math-contract=1"]
    assert [name for name in found if name in order] == order
    assert [found[name] for name in order] == ["application"] * 3 + ["option", "application"] + ["arithmetic"] * 2
    assert list(dict.fromkeys(found.values())) == ["application", "option", "arithmetic"]


def test_fusion_has_a_depth(built: Build) -> None:
    kernels = [built(FAST | more).record["kernels"] for more in ({}, {"fusion_depth": 2}, {"fusion_depth": 1})]
    assert kernels[0] < kernels[1] < kernels[2]


@pytest.mark.parametrize("vectorize", [True, False])
def test_vectors_can_be_switched_off(built: Build, vectorize: bool) -> None:
    options = {"setting": "O3", "target": "llvm -opt-level=0", "left_out": ["FoldConstant"], "vectorize": vectorize}
    assert (" x float>" in (built(options).folder / "host.ll").read_text()) == vectorize


def test_targets_take_features_and_permissions(built: Build) -> None:
    target = "llvm -mattr=+avx,+fma -fast-math-reassoc=1 -opt-level=1"
    found = built(FAST | {"target": target})
    assert '"mattr":["+avx","+fma"]' in found.record["target"]
    assert "fadd reassoc float" in (found.folder / "host.ll").read_text()
    assert arithmetic(target) == {
        "-mattr=+avx,+fma": "llvm -fast-math-reassoc=1 -opt-level=1",
        "-fast-math-reassoc=1": "llvm -mattr=+avx,+fma -opt-level=1",
    }
    assert arithmetic("llvm -num-cores=4") == {}


def test_the_lines_do_the_same_with_tvm_alone(built: Build, tmp_path: Path) -> None:
    import tvm
    from tvm import relax

    script = [f"    {item.name!r}: {item.line}," for item in switches(built(BEST).record, BEST)]
    (tmp_path / "lines.py").write_text("\n".join(["import tvm", "lines = {", *script, "}"]))
    lines = runpy.run_path(str(tmp_path / "lines.py"))["lines"]
    x = relax.Var("x", relax.TensorType((8, 16), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.exp(x)))
    module = relax.transform.LegalizeOps()(builder.get())

    def ran(context: Any) -> Counter[str]:
        noted: list[str] = []

        @tvm.ir.instrument.pass_instrument
        class Noting:
            def run_before_pass(self, _: Any, info: Any) -> None:
                noted.append(str(info.name))

        context.override_instruments([*context.instruments, Noting()])
        with context:
            relax.build(module, "llvm")
        return Counter(noted)

    everything = ran(tvm.transform.PassContext(opt_level=3))
    for name in ("tirx.UnrollLoop#0", "s_tir.ThreadSync#1"):
        assert everything - ran(lines[name]) == {pass_of(name): 1}
    assert "mcpu" not in lines["-mcpu=native"].attrs
    assert "mcpu" in lines["-fast-math-contract=1"].attrs
