"""Names that a configuration of TVM may use. What they mean is said in `conrepair.backends.tvm`."""

from __future__ import annotations

__all__ = ["PASSES", "TARGET"]

TARGET = r"(llvm|opencl|cuda)( -[a-z][a-z0-9_-]*=\S+)*"
PASSES = (
    *("FoldBatchnormToConv2D", "DecomposeOpsForInference", "CanonicalizeBindings", "EliminateCommonSubexpr"),
    *("DeadCodeElimination", "FastMathTransform", "DispatchSampling", "DispatchSortScan", "AnnotateTIROpPattern"),
    *("FoldConstant", "FuseOps", "FuseTIR", "RewriteDataflowReshape", "StaticPlanBlockMemory", "KillAfterLastUse"),
)
"""Those of every target that may be added to a setting or left out."""
