"""Optimization settings: which of the catalogue's passes run, in the catalogue's order; and schedules by rule.

A setting is a subset of one list, so that two settings differ by passes that have names, and a configuration can add
one (`required_pass`) or leave one out (`disabled_pass`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.formats.tvm.target import TargetText
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.words import meant

_LOG = logging.getLogger(__name__)


class _SteppingAside:
    """A schedule rule that leaves a kernel to the next one where it would raise.

    dlight's Matmul rule raises on some convolutions ("not properly inlined"), and that would end the compilation.
    """

    def __init__(self, rule: Any) -> None:
        self._rule = rule

    def apply(self, function: Any, target: Any, tunable: bool) -> Any:
        """As `ScheduleRule.apply`."""
        try:
            return self._rule.apply(function, target, tunable)
        # A rule raises whatever its assumptions break into; the next rule takes the kernel.
        except Exception as error:  # noqa: BLE001
            _LOG.info("%s steps aside: %s", type(self._rule).__name__, str(error).strip().splitlines()[:1])
            return None


def _cpu_schedules() -> Any:
    """Dlight's rules for CPUs, then ours."""
    from tvm.s_tir import dlight

    from conrepair.formats.tvm.cpu_rule import CpuLoops

    return _pass(dlight.cpu.GEMV(), CpuLoops())


def _gpu_schedules() -> Any:
    """The rules of TVM's own default for GPUs."""
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    return _pass(gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction())


def _more_gpu_schedules() -> Any:
    """Dlight's rules that TVM's own default leaves out."""
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    return _pass(gpu.RMSNorm(), gpu.Transpose())


def gpu_fallback() -> Any:
    """Every loop over elements to blocks and threads: a kernel without a binding can't run."""
    from tvm.s_tir import dlight

    return _pass(dlight.gpu.Fallback())


def _pass(*rules: Any) -> Any:
    from tvm.s_tir import dlight

    return dlight.ApplyDefaultSchedule(*map(_SteppingAside, rules))


SETTINGS = ("O0", "O1", "O2", "O3", "tuned")
TUNED = "ApplyTuned"
_ALL = frozenset(SETTINGS)
_DEFAULT = _ALL - {"O0"}
_BETTER = frozenset({"O2", "O3", "tuned"})
_BEST = frozenset({"O3", "tuned"})
_TUNED = frozenset({"tuned"})
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BuildContext:
    """What a pass may need to know of the build that it's part of.

    Attributes:
        target: `tvm.target.Target`.
        folder: Of the build.
        trials: For tuning.
        database: For tuning: folder of an earlier one.
        tuning: Receives what came of it.
    """

    target: Any
    folder: Path
    trials: int
    database: str | None
    tuning: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PlacedPass:
    """A pass at its place.

    Attributes:
        name: TVM's, or ours for schedules.
        about: What it does.
        cpu: Settings that it's part of where the target is a CPU.
        gpu: Settings that it's part of where it's a GPU.
        mandatory: Nothing runs without it, so it can't be disabled.
        lowering: It turns a finished Relax module into what the virtual machine executes.
        make: Makes schedules by rule; None: `relax.transform` or `relax.backend` has a pass of that name.
    """

    name: str
    about: str
    cpu: frozenset[str] = _ALL
    gpu: frozenset[str] = _ALL
    mandatory: bool = False
    lowering: bool = False
    make: Callable[[], Any] | None = None

    def settings(self, target: TargetText) -> frozenset[str]:
        """Settings that it's part of."""
        return self.gpu if target.on_gpu else self.cpu

    def build(self, place: BuildContext) -> Any:
        """The `tvm.transform.Pass`, for a build."""
        if self.name == TUNED:
            from conrepair.formats.tvm.tuning import tuned_schedules

            return tuned_schedules(place.target, place.folder, place.trials, place.database, place.tuning)
        if self.make is not None:
            return self.make()
        from tvm import relax

        return getattr(relax.transform if hasattr(relax.transform, self.name) else relax.backend, self.name)()


CATALOGUE: tuple[PlacedPass, ...] = (
    PlacedPass("FoldBatchnormToConv2D", "puts BatchNorm's factors into the weights before it", _BETTER, _BETTER),
    PlacedPass("DecomposeOpsForInference", "writes BatchNorm, LayerNorm, ... as arithmetic", _BETTER, _BETTER),
    PlacedPass("CanonicalizeBindings", "removes names that only repeat others", _BETTER, _BETTER),
    PlacedPass("EliminateCommonSubexpr", "computes equal expressions once", _BETTER, _BETTER),
    PlacedPass("DeadCodeElimination", "removes what no output needs", _BETTER, _BETTER),
    PlacedPass("FastMathTransform", "approximates exp, tanh, erf by polynomials", _NONE, _NONE),
    PlacedPass("DispatchSampling", "takes the target's sampling operators", _DEFAULT, _ALL),
    PlacedPass("DispatchSortScan", "takes the target's sort and scan operators", _DEFAULT, _ALL),
    PlacedPass("LegalizeOps", "writes every operator as a kernel", mandatory=True),
    PlacedPass("AnnotateTIROpPattern", "says of each kernel what it may be fused with", _BETTER, _DEFAULT),
    PlacedPass("FoldConstant", "computes what doesn't depend on the input", _BETTER, _DEFAULT),
    PlacedPass("FuseOps", "groups kernels that pass values on", _BETTER, _DEFAULT),
    PlacedPass("FuseTIR", "makes one kernel of each group", _BETTER, _DEFAULT),
    PlacedPass(TUNED, "takes the fastest schedules that were measured", _TUNED, _TUNED),
    PlacedPass(
        "ScheduleCPU", "dlight's CPU rules, and ours: parallel, tiled, in vectors", _BEST, _NONE, make=_cpu_schedules
    ),
    PlacedPass(
        "ScheduleGPUMore", "dlight's rules for transposes and normalizations", _NONE, _BEST, make=_more_gpu_schedules
    ),
    PlacedPass("ScheduleGPU", "dlight's rules for products and reductions", _NONE, _DEFAULT, make=_gpu_schedules),
    PlacedPass(
        "ScheduleGPUFallback",
        "binds the loops of all other kernels to blocks and threads",
        _NONE,
        _ALL,
        mandatory=True,
        make=gpu_fallback,
    ),
    PlacedPass("RewriteDataflowReshape", "reshapes without a copy", _DEFAULT, _DEFAULT, lowering=True),
    PlacedPass("ToNonDataflow", "ends the dataflow form", mandatory=True, lowering=True),
    PlacedPass("RemovePurityChecking", "drops annotations of side effects", mandatory=True, lowering=True),
    PlacedPass("CallTIRRewrite", "allocates what kernels write into", mandatory=True, lowering=True),
    PlacedPass("StaticPlanBlockMemory", "lets tensors share memory", _DEFAULT, _DEFAULT, lowering=True),
    PlacedPass("LowerAllocTensor", "turns tensors into storage", mandatory=True, lowering=True),
    PlacedPass("KillAfterLastUse", "frees memory as soon as it may be", _ALL, _ALL, lowering=True),
    PlacedPass("LowerRuntimeBuiltin", "takes the virtual machine's own functions", mandatory=True, lowering=True),
    PlacedPass("ComputePrimValue", "computes scalars in kernels", mandatory=True, lowering=True),
    PlacedPass("VMShapeLower", "computes shapes in the virtual machine", mandatory=True, lowering=True),
    PlacedPass("AttachGlobalSymbol", "names what is exported", mandatory=True, lowering=True),
)


def steps_of(
    target: TargetText, setting: str, required: Iterable[str] = (), disabled: Iterable[str] = ()
) -> list[PlacedPass]:
    """The passes of a setting, in order.

    Args:
        target: Decides which schedules there are.
        setting: One of `SETTINGS`.
        required: Passes to run besides.
        disabled: Passes to leave out.
    """
    more, fewer = set(required), set(disabled)
    return [
        step
        for step in CATALOGUE
        if (setting in step.settings(target) or step.name in more)
        and step.name not in fewer
        and _exists(step, target)
    ]


def check_passes(target: TargetText, setting: str, required: Iterable[str], disabled: Iterable[str]) -> None:
    """Refuse passes that aren't in the catalogue of a target, or that can't be left out.

    Raises:
        ConfigError: naming the pass, and the known ones.
    """
    known = {step.name: step for step in CATALOGUE if _exists(step, target)}
    wanted = {"required_pass": list(required), "disabled_pass": list(disabled)}
    for key, names in wanted.items():
        for name in names:
            if name not in known:
                hint = meant(name, known, f"known: {', '.join(known)}")
                raise ConfigError(f"{key}: there is no pass '{name}' for {target.kind}{hint}")
    for name in wanted["disabled_pass"]:
        if known[name].mandatory:
            raise ConfigError(f"disabled_pass: nothing can be compiled without {name}; leave it out of the list")
        if name in wanted["required_pass"]:
            raise ConfigError(f"required_pass and disabled_pass both name {name}; which is it?")


def explain(target: TargetText, setting: str, required: Iterable[str] = (), disabled: Iterable[str] = ()) -> str:
    """The passes of a setting as text, one on each line."""
    steps = steps_of(target, setting, required, disabled)
    width = max(len(step.name) for step in steps)
    lines = [f"{target.kind} {setting}:"]
    lines += [
        f"{number:3}  {step.name.ljust(width)}  {step.about}{' (lowering)' if step.lowering else ''}"
        for number, step in enumerate(steps, 1)
    ]
    lines.append(f"     then TVM's own passes on each kernel (s_tir), and code generation for {target.kind}")
    return "\n".join(lines)


def _exists(step: PlacedPass, target: TargetText) -> bool:
    """Whether a step has a meaning for a target: schedules of a GPU have none on a CPU."""
    return step.make is None or bool(step.settings(target))
