"""Which of ONNX Runtime's optimizations makes a file give something else than it says.

The names are those of version 1.31 on a CPU: of transformers as its own log says them, of rules as
`disabled_optimizers` takes them. It ignores a wrong name without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

OPTIMIZERS = (
    "EliminateIdentity",
    "EliminateSlice",
    "UnsqueezeElimination",
    "EliminateDropout",
    "ExpandElimination",
    "CastElimination",
    "PreShapeNodeElimination",
    "NoopElimination",
    "DivMulFusion",
    "FuseReluClip",
    "GemmSumFusion",
    "GemmTransposeFusion",
    "NotWhereFusion",
    "ConvAddFusion",
    "ConvMulFusion",
    "ConvBNFusion",
    "Pad_Fusion",
    "MatMul_BatchNormalization_Fusion",
    "LabelEncoderFusion",
    "ClipQuantRewrite",
    "ReluQuantRewrite",
    "DoubleQDQPairsRemover",
    "ConstantSharing",
    "CommonSubexpressionElimination",
    "ConstantFolding",
    "MatMulAddFusion",
    "ReshapeFusion",
    "FreeDimensionOverrideTransformer",
    "SliceConcatToSpaceToDepthFusion",
    "GeluFusionL1",
    "LayerNormFusionL1",
    "QDQPropagationTransformer",
    "WeightBiasQuantization",
    "WhereDummyDq",
    "TransposeOptimizer",
    "TransposeOptimizer_CPUExecutionProvider",
    "QDQS8ToU8Transformer",
    "QDQSelectorActionTransformer",
    "GemmActivationFusion",
    "MatMulIntegerToFloatFusion",
    "DynamicQuantizeMatMulFusion",
    "ConvActivationFusion",
    "GeluFusionL2",
    "LayerNormFusionL2",
    "SimplifiedLayerNormFusion",
    "AttentionFusion",
    "EmbedLayerNormFusion",
    "GatherSliceToSplitFusion",
    "GatherToSliceFusion",
    "MatmulTransposeFusion",
    "BiasGeluFusion",
    "SkipLayerNormFusion",
    "BiasSkipLayerNormFusion",
    "FastGeluFusion",
    "QuickGeluFusion",
    "MatMulScaleFusion",
    "MatMulNBitsFusion",
    "QDQFinalCleanupTransformer",
    "NchwcTransformer",
    "NhwcTransformer",
    "ConvAddActivationFusion",
)
"""Those that are on by default."""


def needed(is_right: Callable[[Collection[str]], bool], names: Sequence[str] = OPTIMIZERS) -> tuple[str, ...]:
    """The optimizations that must be off for a file to give what it says, found by halving them.

    Args:
        is_right: Whether it does with some off.
        names: Of all that are looked at.

    Returns:
        One, or several of which no half is enough; none where all of them make no difference.
    """
    found = tuple(names)
    if not is_right(found):
        return ()
    while len(found) > 1:
        halves = found[: len(found) // 2], found[len(found) // 2 :]
        half = next((half for half in halves if is_right(half)), None)
        if half is None:
            break
        found = half
    return found
