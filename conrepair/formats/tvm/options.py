"""How a model is imported, optimized and compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pydantic

from conrepair.formats.tvm.passes_run import check_left_out
from conrepair.formats.tvm.rpc.reach import RpcDevice
from conrepair.formats.tvm.settings import SETTINGS, check_passes
from conrepair.formats.tvm.target import TargetText, parse_target
from conrepair.ground.runtime.errors import ConfigError

BUILD = "build.json"
"""The file of a build that says what it's of, and how it was made."""

IMPORTER_FORMATS = ("onnx", "torch", "tflite")


@dataclass(frozen=True)
class TvmOptions:
    """Options of a build, as the configuration gives them.

    Attributes:
        target: See `parse_target`.
        setting: Name of a pipeline; see `conrepair.formats.tvm.settings`.
        importer: Format that the model is imported from; default: its own where TVM reads that, else ONNX.
        required_pass: Passes of the catalogue that the setting leaves out.
        disabled_pass: Passes of the setting to leave out.
        left_out: Passes, or single applications of them, that don't run ("FuseOps#0"); see `PassesRun`.
        fusion_depth: Operators that a kernel may be fused of; default: TVM's (256).
        vectorize: Whether kernels compute in vectors where schedules say so.
        fast_math: For `cuda`: whether functions are approximated and tiny numbers become zero, as TVM has it.
        unfused: Operators of the imported model that aren't fused with others.
        unscheduled: Operators whose kernels get no schedule; for CPUs, as a GPU runs nothing without.
        stable: Operators of an ONNX model that are computed in a stable form; see `conrepair.ground.forms`.
        float64: Operators of an ONNX model that are computed in float64.
        trials: For `tuned`: how many candidates are measured.
        database: For `tuned`: folder of an earlier tuning, to start from.
        database_sha256: Of what that folder holds.
        symbolic: Whether sizes that an ONNX model leaves open stay so: one build for all of them.
        threads: That a kernel may use, of those that TVM's pool has (one for each physical core, or
            TVM_NUM_THREADS); default: all.
        built: Folder of a build that is taken as it is, in place of compiling.
        built_sha256: Of that folder.
        device: Where it runs; None is this machine.
        debug_enabled: Whether each kernel's results are kept.
        debug_samples: Of how many samples they are kept.
    """

    target: str = "llvm"
    setting: str = "O2"
    importer: str | None = None
    required_pass: tuple[str, ...] = ()
    disabled_pass: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    fusion_depth: int | None = None
    vectorize: bool = True
    fast_math: bool = True
    unfused: tuple[str, ...] = ()
    unscheduled: tuple[str, ...] = ()
    stable: tuple[str, ...] = ()
    float64: tuple[str, ...] = ()
    trials: int = 64
    database: str | None = None
    database_sha256: str | None = None
    symbolic: bool = False
    threads: int | None = None
    built: str | None = None
    built_sha256: str | None = None
    device: RpcDevice | None = None
    debug_enabled: bool = False
    debug_samples: int = 8

    @property
    def parsed_target(self) -> TargetText:
        """The target in parts."""
        return parse_target(self.target)

    @property
    def pass_config(self) -> dict[str, Any]:
        """What a `tvm.transform.PassContext` is configured with."""
        depth = {} if self.fusion_depth is None else {"relax.FuseOps.max_depth": self.fusion_depth}
        return depth if self.vectorize else {**depth, "tirx.disable_vectorize": True}

    @property
    def host_target(self) -> TargetText:
        """What the part of a GPU's model is compiled for that runs on the processor."""
        given = self.device.host_target if self.device is not None else None
        return parse_target(given or "llvm")


def read_options(values: Mapping[str, Any]) -> TvmOptions:
    """Options from plain values.

    Args:
        values: As the configuration gives them; others are left to whoever put them there.

    Raises:
        ConfigError: if a target, a setting, a pass or an importer doesn't exist.
    """
    known = {name: values[name] for name in TvmOptions.__dataclass_fields__ if name in values}
    options = pydantic.TypeAdapter(TvmOptions).validate_python(known)
    if options.setting not in SETTINGS:
        raise ConfigError(f"setting '{options.setting}' doesn't exist; there are {', '.join(SETTINGS)}")
    if options.importer not in {None, *IMPORTER_FORMATS}:
        raise ConfigError(f"importer '{options.importer}' doesn't exist; there are {', '.join(IMPORTER_FORMATS)}")
    if options.unscheduled and options.parsed_target.on_gpu:
        raise ConfigError(f"unscheduled: {options.parsed_target.kind} runs nothing without a schedule; leave it out")
    if not options.fast_math and options.parsed_target.kind != "cuda":
        raise ConfigError("fast_math: it's cuda's; what LLVM may do with numbers is part of a target (-fast-math=1)")
    check_passes(options.parsed_target, options.setting, options.required_pass, options.disabled_pass)
    check_left_out(options.left_out)
    if options.device is not None:
        _check_remote(options)
    return options


def _check_remote(options: TvmOptions) -> None:
    """Refuse what only this machine can do."""
    if options.setting == "tuned":
        raise ConfigError(
            f"setting 'tuned' measures on this machine, not on {options.device}. Choose another setting, or "
            "tune on `local`"
        )
    if options.debug_enabled:
        raise ConfigError(
            f"debug_enabled looks into kernels on this machine, not on {options.device}. Leave it out, or run "
            "on `local`"
        )
    for target in (options.parsed_target, options.host_target):
        if "native" in target.attributes.values():
            raise ConfigError(
                f"target {target.kind}: -mcpu=native is this machine's processor. Name that of {options.device}: "
                "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
            )
    if options.host_target.kind != "llvm":
        raise ConfigError(f"host_target '{options.host_target.kind}': a processor's code is made by llvm")
