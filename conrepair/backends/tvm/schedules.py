"""Schedules by rule: dlight's, each of which steps aside for a kernel that it can't handle, and ours for CPUs."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["cpu_schedules", "gpu_fallback", "gpu_schedules", "more_gpu_schedules"]

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


def cpu_schedules() -> Any:
    """Dlight's rules for CPUs, then ours."""
    from tvm.s_tir import dlight

    from conrepair.backends.tvm.cpu_rule import CpuLoops

    return _pass(dlight.cpu.GEMV(), CpuLoops())


def gpu_schedules() -> Any:
    """The rules of TVM's own default for GPUs."""
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    return _pass(gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction())


def more_gpu_schedules() -> Any:
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
