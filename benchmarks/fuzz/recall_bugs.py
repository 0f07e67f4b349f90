"""Known bugs of releases that install, each seen by hand: the smallest network and its inputs.

A bug counts as found where a campaign against one of its wrong releases has a finding of
this kind by these operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

__all__ = ["KNOWN", "NOT_SEEN", "KnownBug"]


@dataclass(frozen=True)
class KnownBug:
    """A bug that was seen.

    Attributes:
        name: In plain words; no two are the same.
        thread: Where it is reported; empty where nobody was found to have reported it.
        distribution: Which installs it.
        wrong: Releases in which it was seen.
        right: A later release in which it was seen to be mended; empty: none.
        kind: "numbers", "exception", "crash", "shape", "type", "not finite" or "chance".
        operators: Types of the smallest network.
        what: In a sentence.
        opset: Of the network.
        text: Of the network, without its first line.
        values: What each input is fed.
    """

    name: str
    thread: str
    distribution: str
    wrong: tuple[str, ...]
    right: str
    kind: str
    operators: tuple[str, ...]
    what: str
    text: str
    values: Mapping[str, Any]
    opset: int = 17

    @property
    def model(self) -> onnx.ModelProto:
        """The smallest network."""
        return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {self.opset}]> {self.text}')

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """What shows it, in the types of the inputs."""
        found = {}
        for item in self.model.graph.input:
            kind = item.type.tensor_type
            shape = [size.dim_value for size in kind.shape.dim]
            values = np.array(self.values[item.name], helper.tensor_dtype_to_np_dtype(kind.elem_type))
            found[item.name] = values.reshape(shape)
        return found


KNOWN = (
    KnownBug(
        name="identity transpose into Gemm",
        thread="microsoft/onnxruntime#32228",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0"),
        right="1.30.0",
        kind="numbers",
        operators=("Transpose", "MatMul", "Add"),
        what=("A Transpose that changes nothing is folded into Gemm as if it transposed."),
        text=(
            "g (float[2,2] a, float[2,2] b, float[2] c) => (float[2,2] y) { t = Transpose <perm=[0,1]> "
            "(a) m = MatMul (t, b) y = Add (m, c) }"
        ),
        values={"a": [[1, 2], [3, 4]], "b": [[1, 0], [0, 1]], "c": [0, 0]},
    ),
    KnownBug(
        name="identity transpose into Gemm, shapes",
        thread="microsoft/onnxruntime#32417",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0"),
        right="1.30.0",
        kind="exception",
        operators=("Transpose", "Gemm"),
        what=("The same fold where the matrix isn't square: the kernel refuses the sizes."),
        text=(
            "g (float[3,4] x, float[4,5] w, float[5] b) => (float[3,5] y) { t = Transpose <perm=[0,1]> "
            "(x) y = Gemm (t, w, b) }"
        ),
        values={
            "x": [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]],
            "w": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]],
            "b": [0, 0, 0, 0, 0],
        },
    ),
    KnownBug(
        name="division fused, producer lost",
        thread="microsoft/onnxruntime#32416",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0", "1.32.0"),
        right="",
        kind="exception",
        operators=("Cast", "Div", "Mul"),
        what=("DivMulFusion makes no edge to the other factor, whose producer another rule then removes."),
        text=(
            "g (float[2] x, float[2] z) => (float[2] y) <float one = {1}> { m = Cast <to=1> (x) f = Div "
            "(one, z) y = Mul (f, m) }"
        ),
        values={"x": [1, 2], "z": [1, 2]},
    ),
    KnownBug(
        name="division fused, Identity lost",
        thread="microsoft/onnxruntime#32413",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0", "1.32.0"),
        right="",
        kind="exception",
        operators=("Identity", "Div", "Mul"),
        what=("The same defect by an Identity."),
        text=(
            "g (float[2] x, float[2] z) => (float[2] y) <float one = {1}> { m = Identity (x) f = Div "
            "(one, z) y = Mul (f, m) }"
        ),
        values={"x": [1, 2], "z": [1, 2]},
    ),
    KnownBug(
        name="layer norm without kept axes",
        thread="microsoft/onnxruntime#30513",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0", "1.32.0"),
        right="",
        kind="numbers",
        operators=("ReduceMean", "Sub", "Pow", "Add", "Sqrt", "Div", "Mul"),
        what=("LayerNormFusion doesn't look at keepdims, so another axis is normalised."),
        text=(
            "g (float[3,3] x) => (float[3,3] y) <float two = {2}, float eps = {1e-5}, float[3] s = "
            "{1,2,3}, float[3] b={1,2,3}> { m = ReduceMean <axes=[-1], keepdims=0> (x) c = Sub (x, m) q = "
            "Pow (c, two) v = ReduceMean <axes=[-1], keepdims=0> (q) e = Add (v, eps) r = Sqrt (e) n = "
            "Div (c, r) z = Mul (n, s) y = Add (z, b) }"
        ),
        values={"x": [[1, 2, 4], [5, 3, 9], [7, 8, 0]]},
    ),
    KnownBug(
        name="root mean square without kept axes",
        thread="microsoft/onnxruntime#30513",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0", "1.32.0"),
        right="",
        kind="numbers",
        operators=("Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul"),
        what=("SimplifiedLayerNormFusion doesn't look at keepdims."),
        text=(
            "g (float[3,3] x) => (float[3,3] y) <float two = {2}, float eps = {1e-5}, float[3] s = "
            "{1,2,3}> { q = Pow (x, two) v = ReduceMean <axes=[-1], keepdims=0> (q) e = Add (v, eps) r = "
            "Sqrt (e) n = Div (x, r) y = Mul (n, s) }"
        ),
        values={"x": [[1, 2, 4], [5, 3, 9], [7, 8, 0]]},
    ),
    KnownBug(
        name="layer norm of a vector",
        thread="microsoft/onnxruntime#31147",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0", "1.32.0"),
        right="",
        kind="exception",
        operators=("ReduceMean", "Sub", "Pow", "Add", "Sqrt", "Div", "Mul"),
        what=("LayerNormFusion takes the quotient, which it removes, for the scale."),
        text=(
            "g (float[3] x) => (float[3] y) <float two = {2}, float eps = {1e-5}> { m = ReduceMean "
            "<axes=[-1], keepdims=1> (x) c = Sub (x, m) q = Pow (c, two) v = ReduceMean <axes=[-1], "
            "keepdims=1> (q) e = Add (v, eps) r = Sqrt (e) n = Div (c, r) y = Mul (n, two) }"
        ),
        values={"x": [1, 2, 4]},
    ),
    KnownBug(
        name="layer norm with a wider scale",
        thread="microsoft/onnxruntime#31980",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0", "1.32.0"),
        right="",
        kind="exception",
        operators=("ReduceMean", "Sub", "Pow", "Add", "Sqrt", "Div", "Mul"),
        what=("A factor that makes the result wider is taken for the scale."),
        text=(
            "g (float[1,1] x) => (float[1,2] y) <float two = {2}, float eps = {1e-5}, float[2] s = {1,2}> "
            "{ m = ReduceMean <axes=[-1], keepdims=1> (x) c = Sub (x, m) q = Pow (c, two) v = ReduceMean "
            "<axes=[-1], keepdims=1> (q) e = Add (v, eps) r = Sqrt (e) n = Div (c, r) y = Mul (n, s) }"
        ),
        values={"x": [[1]]},
    ),
    KnownBug(
        name="layer norm with a narrow scale",
        thread="microsoft/onnxruntime#25855",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0"),
        right="1.27.0",
        kind="exception",
        operators=("ReduceMean", "Sub", "Pow", "Add", "Sqrt", "Div", "Mul"),
        what=("A factor of one element is taken for a scale of all."),
        text=(
            "g (float[2,3] x) => (float[2,3] y) <float two = {2}, float eps = {1e-5}, float[1] s = {2}, "
            "float[3] b={1,2,3}> { m = ReduceMean <axes=[-1], keepdims=1> (x) c = Sub (x, m) q = Pow (c, "
            "two) v = ReduceMean <axes=[-1], keepdims=1> (q) e = Add (v, eps) r = Sqrt (e) n = Div (c, r) "
            "z = Mul (n, s) y = Add (z, b) }"
        ),
        values={"x": [[1, 2, 4], [5, 3, 9]]},
    ),
    KnownBug(
        name="average over end pads",
        thread="microsoft/onnxruntime#26708",
        distribution="onnxruntime",
        wrong=("1.22.0",),
        right="1.27.0",
        kind="numbers",
        operators=("AveragePool",),
        what=("The divisor uses the wrong entry of pads (opset 19)."),
        text=(
            "g (float[1,1,2,2] x) => (float[1,1,2,2] y) { y = AveragePool <kernel_shape=[2,2], "
            "pads=[0,0,1,1], count_include_pad=1> (x) }"
        ),
        values={"x": [[[[1, 1], [1, 1]]]]},
        opset=19,
    ),
    KnownBug(
        name="average over partial windows",
        thread="pytorch/pytorch#183528",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0"),
        right="1.30.0",
        kind="numbers",
        operators=("AveragePool",),
        what=("With ceil_mode and count_include_pad the last window is divided by the whole kernel."),
        text=(
            "g (float[1,1,5] x) => (float[1,1,3] y) { y = AveragePool <kernel_shape=[2], strides=[2], "
            "ceil_mode=1, count_include_pad=1> (x) }"
        ),
        values={"x": [[[1, 2, 3, 4, 5]]]},
    ),
    KnownBug(
        name="pad fused into average pool",
        thread="microsoft/onnxruntime#22177",
        distribution="onnxruntime",
        wrong=("1.20.1",),
        right="1.22.0",
        kind="numbers",
        operators=("Pad", "AveragePool"),
        what=("PadFusion makes pads of AveragePool, which it doesn't count."),
        text=(
            "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <int64[8] p = {0,0,0,0,0,0,1,1}> { q = Pad (x, p) "
            "y = AveragePool <kernel_shape=[2,2]> (q) }"
        ),
        values={"x": [[[[1, 1], [1, 1]]]]},
    ),
    KnownBug(
        name="pad fused into max pool",
        thread="",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0"),
        right="1.32.0",
        kind="numbers",
        operators=("Pad", "MaxPool"),
        what=("PadFusion makes zeros into pads, which a maximum leaves out."),
        text=(
            "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <int64[8] p = {0,0,0,0,0,0,1,1}> { q = Pad (x, p) "
            "y = MaxPool <kernel_shape=[2,2]> (q) }"
        ),
        values={"x": [[[[-1, -1], [-1, -1]]]]},
    ),
    KnownBug(
        name="two pads fused",
        thread="",
        distribution="onnxruntime",
        wrong=("1.20.1",),
        right="1.22.0",
        kind="exception",
        operators=("Pad", "AveragePool"),
        what=("Pads of Pad and pool are added up to more than the kernel."),
        text=(
            "g (float[1,1,2,2] x) => (float[1,1,5,5] y) <int64[8] p = {0,0,1,1,0,0,1,1}> { q = Pad (x, p) "
            "y = AveragePool <kernel_shape=[2,2], pads=[1,1,1,1]> (q) }"
        ),
        values={"x": [[[[1, 1], [1, 1]]]]},
    ),
    KnownBug(
        name="division by zero",
        thread="microsoft/onnxruntime#27686",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0"),
        right="1.27.0",
        kind="crash",
        operators=("Div",),
        what=("A division of integers by zero ends the process (SIGFPE); later releases refuse it."),
        text=("g (int32[2] a, int32[2] b) => (int32[2] y) { y = Div (a, b) }"),
        values={"a": [1, 2], "b": [1, 0]},
    ),
    KnownBug(
        name="remainder by zero",
        thread="microsoft/onnxruntime#27833",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0"),
        right="1.27.0",
        kind="crash",
        operators=("Mod",),
        what=("A remainder of integers by zero ends the process (SIGFPE); later releases refuse it."),
        text=("g (int32[2] a, int32[2] b) => (int32[2] y) { y = Mod (a, b) }"),
        values={"a": [1, 2], "b": [1, 0]},
    ),
    KnownBug(
        name="least integer by minus one",
        thread="",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0", "1.32.0"),
        right="",
        kind="crash",
        operators=("Div",),
        what=("The least int32 divided by -1 ends the process (SIGFPE)."),
        text=("g (int32[2] a, int32[2] b) => (int32[2] y) { y = Div (a, b) }"),
        values={"a": [1, -2147483648], "b": [1, -1]},
    ),
    KnownBug(
        name="quick GELU in double",
        thread="microsoft/onnxruntime#32421",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0", "1.27.0", "1.30.0"),
        right="1.32.0",
        kind="exception",
        operators=("Mul", "Sigmoid"),
        what=("QuickGeluFusion makes an operator that has no kernel for doubles."),
        text=(
            "g (double[2] x) => (double[2] y) <double a = {1.702}> { s = Mul (x, a) t = Sigmoid (s) y = Mul (x, t) }"
        ),
        values={"x": [1, 2]},
    ),
    KnownBug(
        name="scale fused into MatMul",
        thread="microsoft/onnxruntime#24340",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0"),
        right="1.27.0",
        kind="exception",
        operators=("MatMul", "Mul", "Concat"),
        what=("MatMulScaleFusion loses the axis that the factor added, so Concat gets scalars."),
        text=(
            "g (float[2] a, float[2] b) => (float[2] y) <float[1] s={2}> { m = MatMul (a, b) t = Mul (m, "
            "s) y = Concat <axis=0> (t, t) }"
        ),
        values={"a": [1, 2], "b": [3, 4]},
    ),
    KnownBug(
        name="scale fused, rank lost",
        thread="microsoft/onnxruntime#24340",
        distribution="onnxruntime",
        wrong=("1.20.1", "1.22.0"),
        right="1.27.0",
        kind="shape",
        operators=("MatMul", "Mul"),
        what=("The same fusion where the result itself loses an axis."),
        text=(
            "g (float[2,2] a, float[2,2] b) => (float[1,2,2] y) <float[1,1,1] o = {3}> { m = MatMul (a, "
            "b) y = Mul (m, o) }"
        ),
        values={"a": [[1, 2], [3, 4]], "b": [[1, 0], [0, 1]]},
    ),
    KnownBug(
        name="pads fused into max pool",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="numbers",
        operators=("Pad", "MaxPool"),
        what=("fuse_pad_into_pool makes zeros into pads, which a maximum leaves out."),
        text=(
            "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <int64[8] p = {0,0,0,0,0,0,1,1}> { q = Pad (x, p) "
            "y = MaxPool <kernel_shape=[2,2]> (q) }"
        ),
        values={"x": [[[[-1, -1], [-1, -1]]]]},
    ),
    KnownBug(
        name="largest of logarithms",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="numbers",
        operators=("Log", "ArgMax"),
        what=("eliminate_nop_monotone_argmax drops a Log that makes NaN."),
        text=("g (float[2] x) => (int64[1] y) { s = Log (x) y = ArgMax <axis=0> (s) }"),
        values={"x": [-1, 0.5]},
    ),
    KnownBug(
        name="largest of roots",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="numbers",
        operators=("Sqrt", "ArgMax"),
        what=("eliminate_nop_monotone_argmax drops a Sqrt that makes NaN."),
        text=("g (float[2] x) => (int64[1] y) { s = Sqrt (x) y = ArgMax <axis=0> (s) }"),
        values={"x": [-1, 0.5]},
    ),
    KnownBug(
        name="largest of powers",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="numbers",
        operators=("Exp", "ArgMax"),
        what=("eliminate_nop_monotone_argmax drops an Exp that makes several infinities."),
        text=("g (float[3] x) => (int64[1] y) { s = Exp (x) y = ArgMax <axis=0> (s) }"),
        values={"x": [100, 200, 300]},
    ),
    KnownBug(
        name="reshape that copies a size",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="exception",
        operators=("Reshape",),
        what=("eliminate_consecutive_idempotent_ops drops the first Reshape, whose size the 0 of the second copies."),
        text=(
            "g (float[2,6] x) => (float[3,4] y) <int64[2] b={0,4}, int64[2] c={3,-1}> { s = Reshape (x, "
            "c) y = Reshape (s, b) }"
        ),
        values={"x": [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]]},
    ),
    KnownBug(
        name="three products fused",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="exception",
        operators=("MatMul",),
        what=("fuse_qkv ends with a failed assertion where the common factor is the network's input."),
        text=(
            "g (float[1,2,2] x) => (float[1,2,2] p, float[1,2,2] q, float[1,2,2] r) <float[2,2] "
            "a={1,2,3,4}, float[2,2] b={5,6,7,8}, float[2,2] c={1,3,5,7}> { p = MatMul (x, a) q = MatMul "
            "(x, b) r = MatMul (x, c) }"
        ),
        values={"x": [[[1, 2], [3, 4]]]},
    ),
    KnownBug(
        name="remainder of constants",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="numbers",
        operators=("Mod",),
        what=("The importer folds Mod with the sign of the dividend."),
        text=(
            "g (int32[2] x) => (int32[2] y) <int32[2] a={-7,7}, int32[2] b={3,-3}> { m = Mod (a, b) y = Add (x, m) }"
        ),
        values={"x": [0, 0]},
    ),
    KnownBug(
        name="comparison of constants",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="exception",
        operators=("Less", "And"),
        what=("The importer folds a comparison to the type that was compared."),
        text=("g (bool[2] x) => (bool[2] y) <float[2] a={1,3}, float[2] b={2,2}> { m = Less (a, b) y = And (x, m) }"),
        values={"x": [True, True]},
    ),
    KnownBug(
        name="division of large constants",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="numbers",
        operators=("Div",),
        what=("The importer folds a division of int64 in floating point."),
        text=(
            "g (int64[1] x) => (int64[1] y) <int64[1] a={9007199254740993}, int64[1] b={1}> { m = Div (a, "
            "b) y = Sub (m, x) }"
        ),
        values={"x": [9007199254740992]},
    ),
    KnownBug(
        name="sum of constants",
        thread="apache/tvm#20117",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="exception",
        operators=("Sum",),
        what=("The importer takes the second constant for an axis."),
        text=(
            "g (float[2] x) => (float[2] y) <float[2] a={1,2}, float[2] b={3,4}> { m = Sum (a, b) y = Add (x, m) }"
        ),
        values={"x": [0, 0]},
    ),
    KnownBug(
        name="maximum of constants",
        thread="apache/tvm#20117",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="numbers",
        operators=("Max",),
        what=("The importer takes a constant without axes for the axis of a reduction."),
        text=("g (int64[2] x) => (int64[2] y) <int64[2] a={5,-5}, int64 b={0}> { m = Max (a, b) y = Add (x, m) }"),
        values={"x": [0, 0]},
    ),
    KnownBug(
        name="minimum of constants",
        thread="apache/tvm#20117",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="numbers",
        operators=("Min",),
        what=("The same with Min."),
        text=("g (int64[2] x) => (int64[2] y) <int64[2] a={5,-5}, int64 b={0}> { m = Min (a, b) y = Add (x, m) }"),
        values={"x": [0, 0]},
    ),
    KnownBug(
        name="slope of each element",
        thread="apache/tvm#18598",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="exception",
        operators=("PRelu",),
        what=("The importer refuses a slope with two sizes above one."),
        text=("g (float[2,2] x, float[2,2] s) => (float[2,2] y) { y = PRelu (x, s) }"),
        values={"x": [[-1, 2], [-3, -4]], "s": [[0.1, 0.2], [0.3, 0.4]]},
    ),
    KnownBug(
        name="slope of fewer axes",
        thread="apache/tvm#18598",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="exception",
        operators=("PRelu",),
        what=("The importer refuses a slope that must be broadcast to the input's rank."),
        text=("g (float[1,2,3] x, float[2,1] s) => (float[1,2,3] y) { y = PRelu (x, s) }"),
        values={"x": [[[-1, 2, -3], [-3, -4, 5]]], "s": [[0.1], [0.5]]},
    ),
    KnownBug(
        name="negative index of elements",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="numbers",
        operators=("GatherElements",),
        what=("A negative index reads before the tensor."),
        text=("g (float[2,2] x, int64[1,2] i) => (float[1,2] y) { y = GatherElements <axis=0> (x, i) }"),
        values={"x": [[1, 2], [3, 4]], "i": [[-1, -2]]},
    ),
    KnownBug(
        name="negative index of pieces",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="numbers",
        operators=("GatherND",),
        what=("A negative index reads before the tensor."),
        text=("g (float[2,2] x, int64[1,2] i) => (float[1] y) { y = GatherND (x, i) }"),
        values={"x": [[1, 2], [3, 4]], "i": [[-1, -1]]},
    ),
    KnownBug(
        name="negative index written",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="crash",
        operators=("ScatterND",),
        what=("A negative index writes before the tensor: nothing is changed, or memory is damaged."),
        text=("g (float[4] x, int64[1,1] i, float[1] u) => (float[4] y) { y = ScatterND (x, i, u) }"),
        values={"x": [1, 2, 3, 4], "i": [[-1]], "u": [9]},
    ),
    KnownBug(
        name="constant reshaped by a copied size",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="exception",
        operators=("Reshape",),
        what=("The importer takes the 0 of a constant's new shape for an empty axis."),
        text=(
            "g (float[2,2] x) => (float[2,2] y) <float[2,2] c={1,2,3,4}, int64[2] s={0,-1}> { m = Reshape "
            "(c, s) y = Add (x, m) }"
        ),
        values={"x": [[0, 0], [0, 0]]},
    ),
    KnownBug(
        name="pads of some axes",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="exception",
        operators=("Pad",),
        what=("The importer leaves out Pad's axes at opset 18."),
        text=(
            "g (float[2,3] x) => (float[2,5] y) <int64[2] p={1,1}, float v={0}, int64[1] a={1}> { y = Pad "
            "(x, p, v, a) }"
        ),
        values={"x": [[1, 2, 3], [4, 5, 6]]},
        opset=18,
    ),
    KnownBug(
        name="odd norm of negative numbers",
        thread="apache/tvm#20053",
        distribution="apache-tvm",
        wrong=("0.25.0",),
        right="0.26.0",
        kind="not finite",
        operators=("LpPool",),
        what=("LpPool takes the power of the number, not of its absolute value."),
        text=("g (float[1,1,4] x) => (float[1,1,2] y) { y = LpPool <kernel_shape=[2], strides=[2], p=3> (x) }"),
        values={"x": [[[-1, -2, 3, -4]]]},
        opset=18,
    ),
    KnownBug(
        name="type of the largest's places",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0",),
        right="0.26.0",
        kind="type",
        operators=("TopK",),
        what=("TopK's second result is int32, not int64."),
        text=("g (float[3] x) => (float[2] v, int64[2] i) <int64[1] k={2}> { v, i = TopK (x, k) }"),
        values={"x": [1, 3, 2]},
    ),
    KnownBug(
        name="squeeze by an attribute",
        thread="apache/tvm#19965",
        distribution="apache-tvm",
        wrong=("0.25.0",),
        right="0.26.0",
        kind="shape",
        operators=("Squeeze",),
        what=("The importer leaves out Squeeze's axes below opset 13."),
        text=("g (float[1,2,1] x) => (float[1,2] y) { y = Squeeze <axes=[2]> (x) }"),
        values={"x": [[[1], [2]]]},
        opset=11,
    ),
    KnownBug(
        name="several sizes of a shape",
        thread="apache/tvm#19965",
        distribution="apache-tvm",
        wrong=("0.25.0",),
        right="0.26.0",
        kind="shape",
        operators=("Shape", "Gather"),
        what=("Gather from a shape gives one number, whatever is asked for."),
        text=("g (float[2,3,4] x) => (int64[2] y) <int64[2] i={2,0}> { s = Shape (x) y = Gather <axis=0> (s, i) }"),
        values={"x": [[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]},
    ),
    KnownBug(
        name="reshape that copies a size, silent",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="shape",
        operators=("Reshape",),
        what=("The first Reshape is dropped, so the 0 of the second copies another size."),
        text=(
            "g (float[2,6] x) => (float[3,4] y) <int64[2] c={3,4}, int64[2] b={0,-1}> { s = Reshape (x, "
            "c) y = Reshape (s, b) }"
        ),
        values={"x": [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]]},
    ),
    KnownBug(
        name="pads wider than the kernel",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="exception",
        operators=("Pad", "MaxPool"),
        what=("fuse_pad_into_pool makes pads that are wider than the kernel, which no pool may have."),
        text=(
            "g (float[1,1,2] x) => (float[1,1,5] y) <int64[6] p = {0,0,0,0,0,4}> { q = Pad (x, p) y = "
            "MaxPool <kernel_shape=[2]> (q) }"
        ),
        values={"x": [[[1, 2]]]},
    ),
    KnownBug(
        name="places in a padded tensor",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="numbers",
        operators=("Pad", "MaxPool"),
        what=("fuse_pad_into_pool changes the places that MaxPool gives."),
        text=(
            "g (float[1,1,2,2] x) => (float[1,1,2,2] y, int64[1,1,2,2] i) <int64[8] p = "
            "{0,0,0,0,0,0,1,1}> { q = Pad (x, p) y, i = MaxPool <kernel_shape=[2,2]> (q) }"
        ),
        values={"x": [[[[1, 2], [3, 4]]]]},
    ),
    KnownBug(
        name="two draws made one",
        thread="",
        distribution="onnxoptimizer",
        wrong=("0.4.2",),
        right="",
        kind="chance",
        operators=("RandomUniformLike", "Sub"),
        what=("eliminate_common_subexpression takes two draws for one."),
        text=(
            "g (float[2] x) => (float[2] y) { a = RandomUniformLike (x) b = RandomUniformLike (x) y = Sub (a, b) }"
        ),
        values={"x": [1, 2]},
    ),
    KnownBug(
        name="pads of axes in another order",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0"),
        right="0.27.0",
        kind="shape",
        operators=("Pad",),
        what=("The importer leaves out Pad's axes at opset 18, and pads the wrong ones."),
        text=(
            "g (float[2,2] x) => (float[5,3] y) <int64[4] p={0,1,1,2}, float v={0}, int64[2] a={1,0}> { y "
            "= Pad (x, p, v, a) }"
        ),
        values={"x": [[1, 2], [4, 5]]},
        opset=18,
    ),
    KnownBug(
        name="product over an empty axis",
        thread="apache/tvm#19578",
        distribution="apache-tvm",
        wrong=("0.26.0",),
        right="0.27.0",
        kind="not finite",
        operators=("MatMul",),
        what=("A product over no elements isn't written, so it is what memory held."),
        text=("g (float[2,0] a, float[0,2] b) => (float[2,2] y) { y = MatMul (a, b) }"),
        values={"a": [[], []], "b": []},
    ),
    KnownBug(
        name="infinities of one sign",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0", "0.27.0"),
        right="",
        kind="numbers",
        operators=("IsInf",),
        what=("The importer leaves out which sign is asked for."),
        text=("g (float[3] x) => (bool[3] y) { y = IsInf <detect_negative=0> (x) }"),
        values={"x": [float("inf"), -float("inf"), 1]},
    ),
    KnownBug(
        name="transposed convolution to a size",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0", "0.27.0"),
        right="",
        kind="shape",
        operators=("ConvTranspose",),
        what=("The importer leaves out output_shape."),
        text=(
            "g (float[1,1,3,3] x, float[1,2,3,3] w) => (float[1,2,10,8] y) { y = ConvTranspose "
            "<strides=[3,2], output_shape=[10,8]> (x, w) }"
        ),
        values={
            "x": [[[[0, 1, 2], [3, 4, 5], [6, 7, 8]]]],
            "w": [[[[1, 1, 1], [1, 1, 1], [1, 1, 1]], [[1, 1, 1], [1, 1, 1], [1, 1, 1]]]],
        },
    ),
    KnownBug(
        name="largest in a region",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0", "0.27.0"),
        right="",
        kind="numbers",
        operators=("RoiAlign",),
        what=("The maximum is taken of interpolated values; ONNX weighs first."),
        text=(
            "g (float[1,1,4,4] x, float[1,4] r, int64[1] b) => (float[1,1,2,2] y) { y = RoiAlign "
            '<mode="max", output_height=2, output_width=2, sampling_ratio=2, '
            'coordinate_transformation_mode="output_half_pixel"> (x, r, b) }'
        ),
        values={
            "x": [[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]]],
            "r": [[0, 0, 3, 3]],
            "b": [0],
        },
    ),
    KnownBug(
        name="running statistics",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0", "0.27.0"),
        right="",
        kind="numbers",
        operators=("BatchNormalization",),
        what=("The running mean and variance take momentum for its complement."),
        text=(
            "g (float[2,2,1] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[2,2,1] y, "
            "float[2] nm, float[2] nv) { y, nm, nv = BatchNormalization <training_mode=1> (x, s, b, m, v) "
            "}"
        ),
        values={"x": [[[1], [2]], [[3], [8]]], "s": [1, 1], "b": [0, 0], "m": [0, 0], "v": [1, 1]},
    ),
    KnownBug(
        name="mask of a dropout",
        thread="",
        distribution="apache-tvm",
        wrong=("0.26.0", "0.27.0"),
        right="",
        kind="type",
        operators=("Dropout",),
        what=("The mask is float32, not bool."),
        text=("g (float[3] x) => (float[3] y, bool[3] m) { y, m = Dropout (x) }"),
        values={"x": [1, 2, 3]},
    ),
    KnownBug(
        name="expansion to a fed shape",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0", "0.27.0"),
        right="",
        kind="shape",
        operators=("Expand",),
        what=("A size of one in the fed shape cuts the tensor."),
        text=("g (float[3,1] x, int64[2] s) => (float[n,m] y) { y = Expand (x, s) }"),
        values={"x": [[1], [2], [3]], "s": [1, 4]},
    ),
    KnownBug(
        name="selection by fed bounds",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0", "0.27.0"),
        right="",
        kind="shape",
        operators=("NonMaxSuppression",),
        what=("A number of boxes that is fed is taken for none."),
        text=(
            "g (float[1,3,4] b, float[1,1,3] s, int64[1] m, float[1] i, float[1] t) => (int64[n,3] y) { y "
            "= NonMaxSuppression (b, s, m, i, t) }"
        ),
        values={
            "b": [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]],
            "s": [[[0.9, 0.75, 0.6]]],
            "m": [3],
            "i": [0.5],
            "t": [0],
        },
    ),
    KnownBug(
        name="NaN through Relu",
        thread="apache/tvm#19750",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0", "0.27.0"),
        right="",
        kind="not finite",
        operators=("Relu",),
        what=("NaN becomes 0."),
        text=("g (float[3] x) => (float[3] y) { y = Relu (x) }"),
        values={"x": [float("nan"), -1, 1]},
    ),
    KnownBug(
        name="NaN through Max",
        thread="",
        distribution="apache-tvm",
        wrong=("0.25.0", "0.26.0", "0.27.0"),
        right="",
        kind="not finite",
        operators=("Max",),
        what=("NaN is dropped where it comes first."),
        text=("g (float[3] x, float[3] z) => (float[3] y) { y = Max (x, z) }"),
        values={"x": [float("nan"), 1, 2], "z": [1, float("nan"), 0]},
    ),
    KnownBug(
        name="NaN through Clip",
        thread="",
        distribution="apache-tvm",
        wrong=("0.26.0", "0.27.0"),
        right="",
        kind="not finite",
        operators=("Clip",),
        what=("NaN becomes the lower bound; 0.25.0 was right."),
        text=("g (float[3] x) => (float[3] y) <float a={0}, float b={2}> { y = Clip (x, a, b) }"),
        values={"x": [float("nan"), -1, 1]},
    ),
    KnownBug(
        name="NaN through Sign",
        thread="",
        distribution="apache-tvm",
        wrong=("0.26.0", "0.27.0"),
        right="",
        kind="not finite",
        operators=("Sign",),
        what=("NaN becomes 0; 0.25.0 was right."),
        text=("g (float[3] x) => (float[3] y) { y = Sign (x) }"),
        values={"x": [float("nan"), -1, 1]},
    ),
    KnownBug(
        name="NaN through ReduceMax",
        thread="apache/tvm#19755",
        distribution="apache-tvm",
        wrong=("0.26.0", "0.27.0"),
        right="",
        kind="not finite",
        operators=("ReduceMax",),
        what=("A later number replaces NaN; 0.25.0 was right."),
        text=("g (float[1,3] x) => (float[1,1] y) <int64[1] a={1}> { y = ReduceMax (x, a) }"),
        values={"x": [[float("nan"), 1, 2]]},
        opset=18,
    ),
)

NOT_SEEN = (
    (
        "microsoft/onnxruntime#28413",
        "onnxruntime",
        "seen neither in 1.20.1 and 1.22.0 nor in 1.27.0 and later; the thread names 1.25.1",
    ),
    (
        "microsoft/onnxruntime#24160",
        "onnxruntime",
        "its network isn't in the thread; five guesses at constants of one element were right in all releases",
    ),
    ("microsoft/onnxruntime#21455", "onnxruntime", "mended before 1.20.1"),
    ("microsoft/onnxruntime#17565", "onnxruntime", "the casts are kept in 1.20.1 and later"),
    ("microsoft/onnxruntime#10514", "onnxruntime", "mended before 1.20.1"),
    (
        "onnx/optimizer#252, #267, #273, #275",
        "onnxoptimizer",
        "small networks of nop_concat, concat_into_reshape, nop_cast and nop_expand come out right in 0.4.2",
    ),
    (
        "onnx/optimizer#254",
        "onnxoptimizer",
        "common subexpressions with other attributes, constants and branches are kept apart in 0.4.2",
    ),
    (
        "onnx/optimizer#260, #272",
        "onnxoptimizer",
        "small networks of deadend and adjust_slice_and_matmul neither crash nor differ in 0.4.2",
    ),
    (
        "onnx/optimizer#274, #283, #284, #285",
        "onnxoptimizer",
        "one drawn network that is only an attachment; small ones of the four passes are right in 0.4.2",
    ),
    ("apache/tvm#20105", "apache-tvm", "ONNX has no adaptive pooling but the global one, which is right"),
    (
        "apache/tvm#20198",
        "apache-tvm",
        "ONNX's MatMul has no type of its result, and the passes stand in no usual pipeline",
    ),
    ("apache/tvm#17207", "apache-tvm", "LiftTransformParams stands in no usual pipeline"),
    (
        "ArgMax of a flat Softmax (opset 11)",
        "onnxoptimizer",
        "the two references differ, and the one that runs the result agrees with it",
    ),
    (
        "apache/tvm#18698",
        "apache-tvm",
        "not run to the end; the importer is known to refuse axes as an attribute at opset 17",
    ),
    ("tanh(NaN) (apache/tvm#11696)", "apache-tvm", "FastMathTransform stands in no usual pipeline; not run"),
)
