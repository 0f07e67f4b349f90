"""Why specifications forbid what ONNX Runtime takes: by operator, what was changed or refused, and the reason."""

from __future__ import annotations

import fnmatch
import re

__all__ = ["crashes", "reason_of"]

_REASONS = (
    ("Reduce*", r"from the end of an empty tensor$", "ONNX Runtime computes other shapes than the standard says"),
    ("TopK", r"^\[sorted\b", "what isn't sorted has no order that is said"),
    ("BatchNormalization", r"input_(mean|var)", "in training, ONNX Runtime overwrites these of float16"),
    (
        "*",
        r"^\[(keepdims|select_last_index|transA|transB|ceil_mode|storage_order|largest|sorted|detect_negative"
        r"|allowzero|upper|detect_positive|exclusive|fmod|reverse|training_mode|align_corners|interleaved|is_causal"
        r"|antialias|exclude_outside|center_point_box|input_forget|linear_before_reset"
        r"|inverse|onesided|periodic)\b",
        "a flag is 0 or 1",
    ),
    ("*", r"an image without elements$", "there is nothing to see: only the batch may be empty"),
    ("*Pool", r"kernel_shape has another value$", "ONNX Runtime makes wrong shapes of a window wider than the image"),
    ("*", r"^\[auto_pad: \w+ -> \] ", "the standard has no padding of that name"),
    ("*Pool", r"a last place outside", "before opset 22 the standard counts it"),
    ("ConvTranspose", r"to the same size with and without", "ONNX's checker refuses the model"),
    ("ConvTranspose", r"without batch and channels$", "ONNX's checker refuses the model"),
    ("MaxUnpool", r"taken twice$", "which of two values is kept isn't said"),
    ("*Pool", r"takes away at the ends$", "ONNX's reference fails, ONNX Runtime does for some opsets"),
    ("*LpPool", r"^\[p: ", "a norm is positive, and one above 4 too large for 16 bits"),
    ("*Pool", r"^\[count_include_pad: ", "a flag is 0 or 1"),
    ("*", r"^\[input \d+: axis \d+ of 7 in\] .* has another shape$", "ranks above 6 aren't made"),
    ("Unsqueeze", r"has another length$", "ranks above 6 aren't made"),
    ("ConstantOfShape", r"-> (\(\d+(, \d+){6}\))\] input has other values$", "ranks above 6 aren't made"),
    ("Gather*", r"axis \d+ of \d in\] indices has another shape$", "ranks above 6 aren't made"),
    ("OneHot", r"axis \d+ of 6 in\] indices has another shape$", "ranks above 6 aren't made"),
    ("Unsqueeze", r"axis \d+ of 6 in\] data has another shape$", "ranks above 6 aren't made"),
    ("Expand", r"-> (\(\d+(, \d+){6}\))\] shape has other values$", "ranks above 6 aren't made"),
    ("Reshape", r"-> (\(-?\d+(, -?\d+){6}\))\] shape has other values$", "ranks above 6 aren't made"),
    ("CenterCropPad", r"-> .*-\d.*\] shape has other values$", "a size isn't negative"),
    ("Compress", r"condition has another shape$", "a vector says it, of at most the length of the axis"),
    ("Einsum", r"^\[input \d+: (\d+ -> 1|1 -> \d+) on .*has another shape$", "a letter stands for one size"),
    (
        "GatherND",
        r"(-> \d+ on axis \d+|batch_dims.*|axis \d+ of \d out)\] indices has another shape$",
        "batches have the same sizes",
    ),
    ("Pad", r"-> 0 on axis \d+\] nothing is left to repeat$", "a pad that takes away from no elements"),
    ("Pad", r"constant_value has another shape$", "the standard's constant is a scalar"),
    ("ReverseSequence", r"^\[(batch|time)_axis: ", "the standard's axes are 0 and 1"),
    ("Scatter*", r"^\[reduction out\] indices", "the standard forbids the same place twice"),
    ("Scatter*", r"^\[reduction: .*has another value$", "ONNX Runtime takes any word for none"),
    ("Scatter*", r"-> bool\] data has another element type$", "there is no arithmetic of truth values"),
    ("Squeeze", r"axes has other values$", "an axis is named once"),
    (
        "NonMaxSuppression",
        r"(class|threshold) has another shape$",
        "the standard's bounds are scalars, or lists of one",
    ),
    ("Resize", r"roi (is missing|has another shape)$", "the standard crops by two bounds for each axis"),
    ("Resize", r"-> 0 on axis \d\] X has another shape$", "there is nothing to see in an image without elements"),
    ("Resize", r"^\[(nearest_)?mode: \w+ -> \] ", "the standard has no mode of that name"),
    (
        "*",
        r"^\[activation_(alpha|beta): ",
        "one number for each function that has it, and none that makes large ones",
    ),
    ("*", r"^\[clip: ", "nothing is left by a clip that isn't positive"),
    ("DFT", r"(a spectrum|parts) of nothing$", "there is nothing to see in a spectrum without elements"),
    (
        "STFT",
        r"signal has another shape$",
        "the standard's signals have a batch, and parts that are real if one-sided",
    ),
    ("MelWeightMatrix", r"has other values$", "bins of a spectrum, from low to high frequencies, of a usual rate"),
    ("[LS]*", r"body has another value$", "a body says the element types and ranks that it's given"),
    ("Loop", r"is stacked never$", "ONNX Runtime makes wrong shapes of it"),
    ("Loop", r"M has other values$", "a count isn't negative"),
    ("DeformConv", r"W has another shape$", "ONNX Runtime makes wrong shapes of a window wider than the image"),
    ("RNN", r"a sequence without elements$", "there is nothing to see: GRU and LSTM end the process"),
    ("RoiAlign", r"^\[output_(height|width): ", "there is nothing to see in a result without elements"),
    (
        "RoiAlign",
        r"^\[(coordinate_transformation_)?mode: ",
        "ONNX Runtime takes names that the standard does not have",
    ),
    (
        "AffineGrid",
        r"(theta has another shape|size has other values)$",
        "ONNX Runtime cuts off, or repeats, what doesn't fit",
    ),
    ("MaxUnpool", r"^\[pads: .*-\d", "pads aren't negative"),
    ("RoiAlign", r"^\[spatial_scale: ", "a scale is positive"),
    ("Celu", r"^\[alpha: .*0\] a division by alpha$", "it's divided by alpha"),
    ("Clip", r"\] (min|max) has another shape$", "the standard's bounds are scalars"),
    ("Cast", r"^\[to: .*8\] to has another value$", "strings aren't made"),
    ("Gelu", r"^\[approximate\b", "the standard has two approximations"),
    ("*", r"axis 0 of 1 out\] axes has (another value|other values)$", "a scalar has no axes"),
    ("Arg*", r"the largest of nothing$", "there is no place in what is empty"),
    ("ReduceMean", r"the mean of nothing", "the standard doesn't say what that is"),
    ("*", r"^\[noop_with_empty_axes:", "a flag is 0 or 1"),
    ("*Normalization", r"^\[epsilon: ", "a spread that isn't positive has no root"),
    ("LRN", r"^\[(alpha|beta|bias): ", "a spread that isn't positive has no root"),
    ("MeanVarianceNormalization", r"X has another element type$", "the standard adds floats of 32 bits"),
    ("MeanVarianceNormalization", r"axes has another value$", "axes that there aren't mean nothing"),
    ("RMSNormalization", r"scale has another shape$", "the standard broadcasts a scale to the axes of the norm"),
    ("BatchNormalization", r"^\[momentum: ", "a momentum is between 0 and 1"),
    ("*Normalization", r"^\[stash_type: ", "it's computed in floats"),
    ("GroupNormalization", r"(scale|bias) has another shape$", "the standard has one for each group, or channel"),
    (
        "*",
        r"\] [abwxy]_(scale|zero_point) has another (shape|rank)$",
        "in the standard both are scalars, or have the axis's size",
    ),
    ("*MatMul*", r"the sum of nothing$", "what's made isn't the standard's: the memory as it was"),
    ("DynamicQuantizeLinear", r"no largest number$", "the standard needs one"),
    ("Attention", r"^\[softmax_precision: ", "it's computed in floats"),
    ("Attention", r"^\[(scale|softcap): .*-", "a scale and a cap are positive"),
    ("Attention", r"attn_mask has another element type$", "a mask is of truth values, or of the query's type"),
    ("Attention", r"^\[qk_matmul_output_mode: ", "there are four modes"),
    ("Attention", r"\] (K|V|nonpad_kv_seqlen) has another shape$", "the standard broadcasts no keys and no values"),
    ("*Loss", r"^\[reduction: ", "the standard has three reductions"),
    ("*Loss", r"\] weights? has another shape$", "the standard has a weight for each class"),
    ("RotaryEmbedding", r"no halves$", "the standard turns halves of a width"),
    ("PRelu", r"\] slope has another shape$", "the standard broadcasts slopes to the input alone"),
)
"""Operators (a glob), a regular expression for "[step] refusal", the reason."""

_CRASHES = (
    ("Scan", r"a slice without elements$"),
    ("Loop", r"M is not a constant$"),
    ("*", r"ONNX Runtime ends the process$"),
    ("Einsum", r"(equation has another value|-> 0 on axis \d+\] Inputs has another shape)$"),
    ("GRU", r"a sequence without elements$"),
    ("GatherND", r"batch_dims has another value$"),
    ("InstanceNormalization", r"an image without elements$"),
    ("LSTM", r"a sequence without elements$"),
    ("QuantizeLinear", r"blocks of nothing$"),
    ("RoiAlign", r"an image without elements$"),
    ("STFT", r"(frame_length has other values|window has another shape)$"),
    ("Split", r"num_outputs has another value$"),
)
"""Operators and, as above, refused steps to what ends the process of ONNX Runtime: it's never run."""


def crashes(op: str, message: str) -> bool:
    """Whether ONNX Runtime crashes where a specification refuses."""
    return any(fnmatch.fnmatchcase(op, glob) and re.search(expression, message) for glob, expression in _CRASHES)


def reason_of(op: str, message: str) -> str | None:
    """Why a specification is right to forbid what the runtime takes; None where nobody has said so."""
    for glob, expression, reason in _REASONS:
        if fnmatch.fnmatchcase(op, glob) and re.search(expression, message):
            return reason
    return None
