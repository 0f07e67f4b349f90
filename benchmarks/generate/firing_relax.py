"""Which of TVM's optional passes on Relax change a network; run as a process of its own, since TVM may end it.

    python -m benchmarks.generate.firing_relax FOLDER FIRST

reads FOLDER/0.onnx, 1.onnx, ... from number FIRST on, and prints a line of JSON for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

__all__ = ["NOT_IMPORTED", "PASSES", "fired_of_folder"]

PASSES = (
    "AdjustMatmulOrder",
    "CanonicalizeBindings",
    "CombineParallelMatmul",
    "ConvertLayout",
    "DataflowUseInplaceCalls",
    "DeadCodeElimination",
    "DecomposeOpsForInference",
    "EliminateCommonSubexpr",
    "ExpandMatmulOfSum",
    "FastMathTransform",
    "FoldBatchnormToConv2D",
    "FoldConstant",
    "FuseOps",
    "FuseTIR",
    "FuseTransposeMatmul",
    "RemoveRedundantReshape",
    "ReorderPermuteDimsAfterConcat",
    "ReorderTakeAfterMatmul",
    "RewriteDataflowReshape",
    "StaticPlanBlockMemory",
    "ToMixedPrecision",
)
"""Those that an inference doesn't need and that take no replacements, tuning's results or other machines.

They're tried on the module as it's imported; those on kernels behind what they need.
"""

_STOPPED_AT = (
    "BlackmanWindow Celu CenterCropPad Col2Im ConvInteger CumProd DFT DeformConv Det EyeLike GRU HammingWindow "
    "HannWindow If LSTM Loop LpNormalization MaxUnpool MelWeightMatrix NegativeLogLikelihoodLoss OneHot QLinearConv "
    "QLinearMatMul RNN ReverseSequence STFT Scan SoftmaxCrossEntropyLoss ThresholdedRelu"
)
NOT_IMPORTED = tuple(_STOPPED_AT.split())
"""Operators that TVM's importer doesn't know, or stops at in most settings."""

_MARK = "network: "
_KERNELS = ("LegalizeOps", "AnnotateTIROpPattern")
_BEFORE = {
    "ConvertLayout": ("NoLayout",),
    "FoldConstant": _KERNELS,
    "FuseOps": _KERNELS,
    "FuseTIR": (*_KERNELS, "FuseOps"),
    "RewriteDataflowReshape": ("LegalizeOps",),
    "StaticPlanBlockMemory": ("LegalizeOps", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite"),
}


def fired_of_folder(folder: Path, count: int) -> Iterator[dict[str, str] | None]:
    """By network, passes with "fired" or an error; None for those that TVM doesn't import, or that end it."""
    first = 0
    while first < count:
        command = [sys.executable, "-m", "benchmarks.generate.firing_relax", str(folder), str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(_MARK):  # TVM writes what it warns of between
                    yield json.loads(line.removeprefix(_MARK))
                    first += 1
        if first < count:
            yield None
            first += 1


def _fired(model: onnx.ModelProto) -> dict[str, str]:
    from tvm_ffi import structural_equal

    module = _imported(model)
    ready: dict[tuple[str, ...], Any] = {(): module}
    found: dict[str, str] = {}
    for name in PASSES:
        before = _BEFORE.get(name, ())
        try:
            for length in range(1, len(before) + 1):
                if before[:length] not in ready:
                    ready[before[:length]] = _pass(before[length - 1])(ready[before[: length - 1]])
            if not structural_equal(ready[before], _pass(name)(ready[before])):
                found[name] = "fired"
        except Exception as error:  # noqa: BLE001  # whatever a pass raises is written down
            found[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"
    return found


def _imported(model: onnx.ModelProto) -> Any:
    from tvm import relax
    from tvm.relax.dpl import is_op, rewrite_call, wildcard
    from tvm.relax.frontend.onnx import from_onnx

    module = relax.transform.Normalize()(from_onnx(model, keep_params_in_input=False))
    # What looks for a pattern writes some bindings otherwise, though it finds none: that's no change of a pass.
    nothing = is_op("relax.bitwise_not")(is_op("relax.nn.gelu")(wildcard()))
    for name, function in module.functions_items():
        if isinstance(function, relax.Function):
            module.update_func(name, rewrite_call(nothing, lambda found, _: found, function))
    return module


def _pass(name: str) -> Any:
    from tvm import relax

    if name == "NoLayout":  # counts axes from the front
        return relax.transform.ConvertLayout({})
    if name == "ConvertLayout":
        return relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})
    return getattr(relax.transform, name)()


def _main() -> None:
    folder, first = Path(sys.argv[1]), int(sys.argv[2])
    number = first
    while (path := folder / f"{number}.onnx").exists():
        try:
            answer: dict[str, str] | None = _fired(onnx.load(path))
        except Exception:  # noqa: BLE001  # the importer raises whatever it stops at
            answer = None
        print(_MARK + json.dumps(answer), flush=True)
        number += 1


if __name__ == "__main__":
    _main()
