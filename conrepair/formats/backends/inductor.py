"""PyTorch programs compiled by torch.compile, whole or as far as one of its stages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conrepair.formats.backends.base import CUDA, Backend, Switch, named_rightly
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.ground.runtime.errors import ConfigError

STAGES = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
"""What torch.compile calls backends: the captured graph, that made functional, decomposed, and compiled to C++."""

PASSES = (
    "group_batch_fusion_passes",
    "efficient_conv_bn_eval_pass",
    "constant_fold_uniform_value",
    "remove_noop_ops",
    "pass_pattern_0",
    "pass_pattern_1",
    "pass_pattern_2",
    "reorder_for_locality",
    "reinplace_inplaceable_ops",
)
"""Those of 2.13 that run on every network on a CPU, in order, and that it can be compiled without."""

DISABLED = {"pass": "disabled_passes", "decomposition": "disabled_decompositions", "lowering": "disabled_lowerings"}
"""Options by the sort of what they leave out."""
_IMPORTED = (
    "import torch._inductor.decomposition as d, torch._inductor.lowering as l; "
    "torch.compiler.config.force_disable_caches = True; op = torch.ops.{0}; "
)  # before the first compilation of a process; what's in the caches was made with all of them
_FALLBACK = "l.fallback_handler(op, add_to_fallback_set=False)"
OPERATORS = {
    "decomposition": f"{_IMPORTED}d.decompositions.pop(op); l.lowerings.setdefault(op, {_FALLBACK})",
    "lowering": f"{_IMPORTED}l.lowerings[op] = {_FALLBACK}",
}

SWITCHES: dict[str, tuple[Any, Any]] = {
    "cpp.simdlen": (None, 1),
    "cpp.enable_loop_tail_vec": (True, False),
    "cpp.use_two_step_variance_threshold": (1024, 1),
    "layout_optimization": (True, False),
    "pattern_matcher": (True, False),
    "realize_opcount_threshold": (30, 1),
    "max_fusion_size": (64, 1),
    "inplace_buffers": (True, False),
    "emulate_precision_casts": (False, True),
    "cpp.enable_floating_point_contract_flag": ("off", "off"),
    "cpp.enable_unsafe_math_opt_flag": (False, False),
    "cpp.use_decompose_tanh": (False, False),
    "force_pointwise_cat": (False, False),
}
"""Of `torch._inductor.config`, what each is by default, and where it's left out.

Each was seen to change the code that's made or its results (docs/configuration.md).
"""

_CONTRACT = ("off", "on", "fast")
_TF32 = "tf32"
TF32_OFF = "torch.backends.cudnn.allow_tf32 = False"
"""Products of matrices aren't in TF32 unless somebody asks for it; convolutions and recurrent layers are."""


class InductorBackend(Backend):
    """See `conrepair.formats.backends.base.Backend`."""

    settings = MappingProxyType({"eager": {"backend": "eager"}, "": {}})

    def refuses(self, model: Model) -> str | None:
        """TorchScript is compiled already, and torch.compile leaves it as it is."""
        from conrepair.formats.models.detect import is_torchscript

        if model.framework == "torch" and model.factory is None and is_torchscript(Path(model.path)):
            return "torch.compile doesn't take TorchScript"
        return None

    def check(self, options: Mapping[str, Any]) -> None:
        """Stages, passes and switches must exist; those of the last stage are for that."""
        chosen = options.get("inductor_options", {})
        named_rightly("inductor_options", chosen, SWITCHES)
        for name, value in chosen.items():
            usual, off = SWITCHES[name]
            if not (value in _CONTRACT if isinstance(usual, str) else type(value) is type(off)):
                raise ConfigError(f"inductor_options: {name} can't be {value!r}")
        named_rightly("disabled_passes", options.get("disabled_passes", ()), PASSES)
        stage = str(options.get("backend", STAGES[-1]))
        named_rightly("backend", [stage], STAGES)
        last = [name for name in ("inductor_options", "disabled_passes", "disabled_lowerings") if options.get(name)]
        if stage != STAGES[-1] and last:
            raise ConfigError(f"{last[0]}: backend {stage} ends before that; leave one of both out")

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """PyTorch alone."""
        return "torch"

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Compile, where the sizes of the inputs are definite; else when they are known, or with option `trains`.

        Option `dynamic` has it compiled for all sizes that are open.
        """
        from conrepair.formats.backends.inductor_runnable import InductorRunnable

        self.check(options)
        return InductorRunnable(model, options)

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """What took part in the compilation, in order, then the options that are on."""
        whole = options.get("backend", STAGES[-1]) == STAGES[-1]
        ran = [item for item in getattr(load(options), "ran", ()) if whole or item[0] == "decomposition"]
        found = [
            Switch(f"{kind}:{name}", "pass", OPERATORS[kind].format(name))
            if kind in OPERATORS
            else Switch(name, "pass", _compiled({"disabled_passes": name.upper()}))
            for kind, name in dict.fromkeys(ran)
            if (kind in OPERATORS or name in PASSES) and name not in options.get(DISABLED[kind], ())
        ]
        chosen = options.get("inductor_options", {})
        on_cuda = options.get("device") == CUDA
        for name, (usual, off) in SWITCHES.items() if whole else ():
            if chosen.get(name, usual) != off and not (on_cuda and name.startswith("cpp.")):
                found.append(Switch(name, "arithmetic" if usual == off else "option", _compiled({name: off})))
        if on_cuda and options.get(_TF32, True):
            found.append(Switch(_TF32, "arithmetic", TF32_OFF))
        return found

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """By the lists of what's disabled, `tf32`, and options of Inductor."""
        left = dict(options)
        for name in names:
            kind, colon, operator = name.partition(":")
            if name == _TF32:
                left[_TF32] = False
            elif name in SWITCHES:
                left["inductor_options"] = {**left.get("inductor_options", {}), name: SWITCHES[name][1]}
            else:
                key = DISABLED[kind if colon else "pass"]
                left[key] = [*left.get(key, ()), operator or name]
        return left


def _compiled(options: Mapping[str, Any]) -> str:
    return f"torch.compile(model, options={dict(options)!r})"


BACKEND = InductorBackend()
