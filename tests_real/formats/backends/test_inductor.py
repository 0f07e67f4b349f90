"""PyTorch programs compiled by torch.compile: what is left out, what isn't there, and what it leaves behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import small_models as small
import torch

from conrepair.formats.backends import inductor_runnable
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.backends.base import Switch
from conrepair.formats.backends.inductor import BACKEND, PASSES
from conrepair.formats.backends.inductor_runnable import InductorRunnable
from conrepair.formats.models.arithmetic import settled
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConfigError, ModelLoadError

SCALAR = {"cpp.simdlen": 1}  # a third of the time to compile


class Network(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.softmax(torch.erf(x) @ x.t(), 1), torch.nn.functional.gelu(x), torch.log1p(torch.exp(x) * x)


X = np.random.default_rng(0).normal(size=(4, 37)).astype(np.float32)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What compilers keep, kept apart from a person's."""
    folder = tmp_path_factory.mktemp("inductor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Model:
    path = tmp_path_factory.mktemp("torch") / "net.pt2"
    program = torch.export.export(Network(), (torch.from_numpy(X),))
    torch.export.save(program, path)
    return small.model_of("torch", path)


def loaded(model: Model, **options: Any) -> InductorRunnable:
    runnable = backend("inductor").load(model, options)
    assert isinstance(runnable, InductorRunnable)
    return runnable


def run(model: Model, **options: Any) -> list[small.Array]:
    return list(loaded(model, **options).run({"x": X}).values())


def switches(options: dict[str, Any], *ran: tuple[str, str]) -> list[Switch]:
    """Those of a program in whose compilation something took part."""
    return BACKEND.switches(options, lambda _: SimpleNamespace(ran=ran))  # type: ignore[arg-type, return-value]


def eager() -> list[small.Array]:
    with torch.inference_mode():
        return [tensor.numpy() for tensor in Network()(torch.from_numpy(X))]


def test_the_first_stages_give_the_networks_own_bits(network: Model) -> None:
    for stage in ("eager", "aot_eager"):
        for result, expected in zip(run(network, backend=stage), eager(), strict=True):
            np.testing.assert_array_equal(result, expected)
    assert switches({"backend": "eager"}, ("pass", "pass_pattern_0")) == []


def test_decompositions_can_be_left_out_by_themselves(network: Model) -> None:
    stage = {"backend": "aot_eager_decomp_partition"}
    first = loaded(network, **stage)
    assert ("decomposition", "aten.gelu.default") in first.ran
    names = [part.name for part in switches(stage, *first.ran)]
    whole = run(network, **BACKEND.without(stage, names))
    written = list(first.run({"x": X}).values())
    assert not np.array_equal(written[1], eager()[1])
    np.testing.assert_array_equal(whole[1], eager()[1])


def test_a_compiled_program_is_near_it_and_says_what_took_part(network: Model) -> None:
    from torch._inductor import config

    options = {"inductor_options": SCALAR}
    with config.patch({"cpp.vec_isa_ok": False}):  # else it tries which vectors there are
        runnable = loaded(network, **options)
    for result, expected in zip(runnable.run({"x": X}).values(), eager(), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    assert runnable.device_seconds is not None
    assert settled() == ""
    parts = switches(options, *runnable.ran)
    names = [part.name for part in parts]
    assert len(set(names)) == len(names)
    assert names.index("remove_noop_ops") < names.index("lowering:aten.erf.default") < names.index("pattern_matcher")
    assert {part.sort for part in parts} == {"pass", "option"}
    assert "cpp.simdlen" not in names
    assert set(PASSES) <= set(names)


def test_parts_are_added_to_what_is_left_out() -> None:
    options = BACKEND.without({"disabled_passes": ["remove_noop_ops"]}, ["pass_pattern_0", "cpp.simdlen"])
    options = BACKEND.without(options, ["decomposition:aten.gelu.default", "lowering:aten.erf.default"])
    assert options == {
        "disabled_passes": ["remove_noop_ops", "pass_pattern_0"],
        "disabled_decompositions": ["aten.gelu.default"],
        "disabled_lowerings": ["aten.erf.default"],
        "inductor_options": {"cpp.simdlen": 1},
    }
    fast = {"inductor_options": {"cpp.enable_unsafe_math_opt_flag": True}}
    (part,) = [part for part in switches(fast) if part.sort == "arithmetic"]
    assert BACKEND.without(fast, [part.name]) == {"inductor_options": {"cpp.enable_unsafe_math_opt_flag": False}}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backend": "inductr"}, "did you mean 'inductor'"),
        ({"inductor_options": {"cpp.simdlenn": 1}}, "did you mean 'cpp.simdlen'"),
        ({"inductor_options": {"cpp.cxx": "sh"}}, "no 'cpp.cxx'"),
        ({"inductor_options": {"cpp.simdlen": "1"}}, "cpp.simdlen can't be '1'"),
        ({"inductor_options": {"pattern_matcher": 1}}, "pattern_matcher can't be 1"),
        ({"inductor_options": {"cpp.enable_floating_point_contract_flag": "-fplugin"}}, "can't be '-fplugin'"),
        ({"disabled_passes": ["pass_patern_0"]}, "did you mean 'pass_pattern_0'"),
        ({"backend": "eager", "disabled_passes": ["pass_pattern_0"]}, "backend eager ends before that"),
        ({"disabled_lowerings": ["aten.erf"]}, "disabled_lowerings: there is no 'aten.erf'; did you mean"),
        (
            {"disabled_decompositions": ["aten.gelu"]},
            "disabled_decompositions: there is no 'aten.gelu'; did you mean",
        ),
    ],
)
def test_wrong_options_are_refused(network: Model, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        loaded(network, **options)


def test_a_machine_without_a_compiler_is_told_so(network: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config

    with config.patch({"cpp.cxx": ("no-such-compiler",)}), pytest.raises(ModelLoadError, match=r"Install g\+\+"):
        loaded(network)
    monkeypatch.setattr(inductor_runnable.sysconfig, "get_path", lambda _: "/nowhere")
    with pytest.raises(ModelLoadError, match=r"/nowhere has no Python\.h\. Install python3-dev"):
        loaded(network)


def test_torchscript_is_refused(tmp_path: Path) -> None:
    torch.jit.trace(Network(), torch.from_numpy(X)).save(tmp_path / "net.pt")
    assert "TorchScript" in str(backend("inductor").refuses(small.model_of("torch", tmp_path / "net.pt")))


@pytest.mark.slow
def test_with_everything_left_out_it_is_pytorch(network: Model) -> None:
    names, options = [part.name for part in switches({}, *loaded(network).ran)], {}
    compiled = run(network)
    for _ in range(4):  # other operators come up where some aren't decomposed
        options = BACKEND.without(options, names)
        names = [part.name for part in switches(options, *loaded(network, **options).ran)]
        if not names:
            break
    for result, expected, before in zip(run(network, **options), eager(), compiled, strict=True):
        np.testing.assert_array_equal(result, expected)
        assert not np.array_equal(before, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["lowering:aten.erf.default", "decomposition:aten.gelu.default", "pass_pattern_1", "cpp.simdlen"]
)
def test_a_persons_line_does_the_same(network: Model, tmp_path: Path, cache: Path, name: str) -> None:
    (part,) = [part for part in switches({}, *loaded(network).ran) if part.name == name]
    line = part.line if part.line.startswith("import") else ""
    call = "torch.compile(model, options={})" if line else part.line
    script = f"""
import numpy as np, torch
model = torch.export.load({network.path!r}).module()
x = torch.from_numpy(np.load({str(tmp_path / "x.npy")!r}))
{line}
with torch.inference_mode():
    np.savez({str(tmp_path / "y.npz")!r}, *(tensor.numpy() for tensor in ({call})(x)))
"""
    np.save(tmp_path / "x.npy", X)
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    with np.load(tmp_path / "y.npz") as theirs:
        for result, expected in zip(run(network, **BACKEND.without({}, [name])), theirs.values(), strict=True):
            np.testing.assert_array_equal(result, expected)
