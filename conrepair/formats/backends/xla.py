"""TensorFlow and Keras models compiled whole by XLA (`jit_compile`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from conrepair.formats.backends.base import Backend, Switch, named_rightly
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.ground.runtime.errors import ConfigError

PASSES = (
    *(
        "zero_sized_hlo_elimination",
        "dynamic-dimension-simplifier",
        "tree_reduction_rewriter",
        "batch-dot-simplification",
    ),
    *("algsimp", "simplify-sorts", "tuple-simplifier", "while-loop-constant-sinking", "simplify-while-loops"),
    *("while-loop-invariant-code-motion", "reshape-mover", "constant_folding", "simplify-conditional", "dce"),
    *(
        "gather_simplifier",
        "scatter_simplifier",
        "transpose-folding",
        "cse",
        "topk-rewriter",
        "conditional-to-select",
    ),
    *("map-inline", "logistic-expander", "comparison-expander", "convolution-group-converter"),
    *("convolution-canonicalization", "broadcast_canonicalizer", "change-op-data-type", "dot-library-rewriter"),
    *("dynamic-index-splitter", "reduce-window-resizer", "shape-canonicalizer", "literal-canonicalizer"),
    *("reshape-decomposer", "fusion", "fusion-wrapper", "cpu-parallel-task-assigner", "small-while-loop-hoisting"),
    *("optimize_input_output_buffer_alias", "result_caster", "operand_upcaster"),
)
"""Those of TensorFlow 2.21 on a CPU that ordinary networks can be compiled without, by XLA's names."""

_FLAGS = "XLA_FLAGS"
_FAST = "--xla_cpu_enable_fast_math={0}"
_FASTER = " ".join(
    f"--xla_cpu_fast_math_honor_{what}=false" for what in ("nans", "infs", "division", "functions")
)  # else fast math leaves all of these as they are
_PLAIN = {"optimization_level": 0, "max_isa": "SSE4_2", "fast_math": False}


class XlaBackend(Backend):
    """See `conrepair.formats.backends.base.Backend`."""

    settings = MappingProxyType({"O0": {"optimization_level": 0}, "": {}})

    def check(self, options: Mapping[str, Any]) -> None:
        """Passes must exist: XLA ignores a wrong name without a word."""
        named_rightly("disabled_hlo_passes", options.get("disabled_hlo_passes", ()), PASSES)

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """TensorFlow's models as they are, others as Keras."""
        return model.framework if model.framework in {"keras", "tensorflow"} else "keras"

    def environment(self, options: Mapping[str, Any]) -> Mapping[str, str]:
        """The flags, which XLA reads once in a process; option `lists_passes` has it write what each pass made."""
        fast, off = bool(options.get("fast_math")), options.get("disabled_hlo_passes", ())
        level = options.get("optimization_level")
        flags = [
            _FAST.format(str(fast).lower()),
            _FASTER if fast else "",
            "" if level is None else f"--xla_backend_optimization_level={level}",
            f"--xla_cpu_max_isa={options['max_isa']}" if options.get("max_isa") else "",
            f"--xla_disable_hlo_passes={','.join(off)}" if off else "",
            "--xla_dump_hlo_pass_re=.*" if options.get("lists_passes") else "",
        ]
        return {_FLAGS: " ".join(filter(None, flags))}

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Load; it's compiled when the sizes of its inputs are known.

        Raises:
            ConfigError: if this process wasn't started with `environment`.
        """
        from conrepair.formats.backends.xla_runnable import XlaRunnable, started_with

        self.check(options)
        (flags,) = self.environment(options).values()
        if not started_with(flags):
            raise ConfigError(
                f"XLA takes these options from the environment of a process: start it with {_FLAGS}='{flags}'"
            )
        return XlaRunnable(model)

    def listing(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """With a dump of what each pass made, from which its passes are known."""
        return {**options, "lists_passes": True}

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """Passes that changed the model, in order, then what is on."""
        runnable = load(self.listing(options))
        sizes = {spec.name: [size if isinstance(size, int) else 1 for size in spec.shape] for spec in runnable.inputs}
        runnable.run({spec.name: np.zeros(sizes[spec.name], spec.dtype) for spec in runnable.inputs})
        off = options.get("disabled_hlo_passes", ())
        found = [
            Switch(name, "pass", f"{_FLAGS}=--xla_disable_hlo_passes={name}")
            for name in dict.fromkeys(getattr(runnable, "ran", ()))
            if name in PASSES and name not in off
        ]
        if options.get("optimization_level") != 0:
            found.append(Switch("optimization_level", "option", f"{_FLAGS}=--xla_backend_optimization_level=0"))
        if options.get("max_isa") != _PLAIN["max_isa"]:
            found.append(Switch("max_isa", "option", f"{_FLAGS}=--xla_cpu_max_isa={_PLAIN['max_isa']}"))
        if options.get("fast_math"):
            found.append(Switch("fast_math", "arithmetic", f"{_FLAGS}={_FAST.format('false')}"))
        return found

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """By flags."""
        off = [*options.get("disabled_hlo_passes", ()), *(name for name in names if name not in _PLAIN)]
        left = {name: value for name, value in _PLAIN.items() if name in names}
        return {**options, **({"disabled_hlo_passes": off} if off else {}), **left}


BACKEND = XlaBackend()
