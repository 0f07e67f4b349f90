"""The table of verdicts: pairs of models, and what's said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import device_outputs
import ml_networks
import narrow_networks
import odd_modules
import ragged_networks
import verdict_networks as networks
from byte_networks import PREPARATIONS, prepared
from decoder_networks import decoder, heavier, merged, swapped
from onnx import TensorProto
from verdict_networks import LOOKED_UP, NORM, PICTURES, TREE, Make, features, pooled

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A source, a target, and what one look at them says.

    Attributes:
        name: Of the case.
        make: Writes a model to a path, and returns where it is; or an object.
        target: What it's called with besides the path, for the target.
        says: The verdict, of answers and of layers.
        reason: Words of the comparison, or of its notes.
        layer: The first layer of the target at fault; "": it isn't told which.
        evidence: Words of what's said of it.
        repaired: Words of what a repair changed, after which the target is its source's equal.
        verb: What looks at them.
        source: As `target`, for the source.
        options: Of the verb.
    """

    name: str
    make: Make
    target: Mapping[str, Any] = field(default_factory=dict)
    says: str = "equivalent"
    reason: str = ""
    layer: str = ""
    evidence: str = ""
    repaired: str = ""
    verb: Literal["compare", "localize", "repair"] = "localize"
    source: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


FAULTY = "faulty"
WEIGHT = "the weight of `{}` is taken from the original"
ANSWERS: Any = {"verb": "compare"}
REPAIR: Any = {"verb": "repair"}
TEXTS = ("setosa", "versicolor", "virginica")
OTHERS = (TEXTS[1], TEXTS[0], TEXTS[2])
NARROW = ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "INT4", "UINT4"]
OTHER_SIGNATURE = (
    "the signature differs, the numbers don't: input `x` takes the shape [12, 12, 3] "
    "for each sample, `x` of the original [3, 12, 12]"
)
EXCHANGED = {"end": "r = Reshape (m, sizes) y = Transpose <perm = [0, 2, 1]> (r)", "shape": "8, 3"}
FLAT = {"end": "y = Identity (m)", "shape": "24"}
FLATTENED = {"end": "r = Reshape (m, sizes) y = Flatten (r)", "shape": "24"}
ROWS = {"data": odd_modules.ROWS}
PICTURES_OF_DEVICES = {"data": {"image": device_outputs.IMAGES}}
MOVED = {"moved": 0.2}
STEPS: dict[str, dict[str, Any]] = {
    "open": {}, "wrong": {"factor": 1.2}, "fixed": {"time": "6", "batch": "4"}, "lone": {"time": "6", "batch": "1"},
    "wrong-fixed": {"time": "6", "batch": "4", "factor": 1.2}, "steps": {"time": "6"},
}  # fmt: skip
GUARDED = features(NORM + "none = Equal (norm, zero) safe = Where (none, one, norm) y = Div (x, safe)")
FLAG = "a = Relu (x) y = Where (flag, a, {})"
UNUSUAL = [
    ("a mask made into lengths", pooled(), pooled(lengths=True), FAULTY),
    ("nothing to be seen", pooled(), pooled(guard="Identity (count)"), FAULTY),
    ("a row of zeros", GUARDED, features(NORM + "y = Div (x, norm)"), FAULTY),
    (
        "the very number that is compared with",
        features("g = Greater (x, half) y = Cast <to = 1> (g)"),
        features("g = GreaterOrEqual (x, half) y = Cast <to = 1> (g)"),
        FAULTY,
    ),
    ("a threshold", features(TREE.format("BRANCH_LEQ")), features(TREE.format("BRANCH_LT")), FAULTY),
    ("a category", features(LOOKED_UP.format(3.0), "int64"), features(LOOKED_UP.format(4.0), "int64"), FAULTY),
    (
        "a flag's other value",
        features(FLAG.format("half"), more=", bool[1] flag"),
        features(FLAG.format("zero"), more=", bool[1] flag"),
        FAULTY,
    ),
    ("an odd size", PICTURES.format("SAME_UPPER"), PICTURES.format("SAME_LOWER"), FAULTY),
    ("the same guard", pooled(), pooled(guard="Clip (count, one)"), "equivalent"),
    (
        "a condition turned",
        GUARDED,
        features(NORM + "some = Greater (norm, zero) safe = Where (some, norm, one) y = Div (x, safe)"),
        "equivalent",
    ),
    ("no guard at all", features(NORM + "y = Div (x, norm)"), features(NORM + "y = Div (x, norm)"), "equivalent"),
    ("a tree", features(TREE.format("BRANCH_LEQ")), features(TREE.format("BRANCH_LEQ")), "equivalent"),
    ("the same pads", PICTURES.format("VALID"), PICTURES.format("NOTSET"), "equivalent"),
]


def _ends(end: str, kind: str) -> dict[str, int]:
    number = getattr(TensorProto, kind)
    return {"kind": number} if end == "output" else {"kind": TensorProto.FLOAT, "given": number}


def _narrow() -> list[Case]:
    """ONNX files whose ends or weights are of types that NumPy hasn't: against themselves, and scaled."""
    found = list[Case]()
    for end in ("input", "output"):
        for kind in NARROW:
            name, make, said = f"{end} in {kind}", narrow_networks.ends_in, _ends(end, kind)
            wrong = {**said, "scale": 1.5}
            found += [
                Case(name, make, said, source=said, **ANSWERS),
                Case(f"{name}, scaled", make, wrong, FAULTY, "", "product", "scaled by 1.5", source=said),
            ]
    for kind in ("INT4", "UINT4"):
        name, make, said = f"weights in {kind}", narrow_networks.four_bits, {"kind": getattr(TensorProto, kind)}
        found += [
            Case(name, make, said, source=said, **ANSWERS),
            Case(f"{name}, scaled", make, {**said, "scale": 0.13}, FAULTY, evidence="scaled by 1.3", source=said),
        ]
    return found


# fmt: off
CASES = [
    # Outputs of mixed sizes, of exchanged axes.
    Case("columns", networks.columns, **REPAIR),
    Case("columns, reordered", networks.columns, {"reordered": True}, **REPAIR),
    Case("columns, one off", networks.columns, {"wrong": 1.02}, FAULTY,
         "column 5 of `y` is off by 2.0 %", "m",
         "large values hide this error until they are subtracted: it changes the outputs by 2.",
         "`m` is computed anew, by MatMul",
         **REPAIR),
    Case("columns, exchanged", networks.columns, EXCHANGED, FAULTY, "its axes in another order", "y",
         "structure: Transpose `y` is only in the converted model: ",
         "Transpose [0, 2, 1] is put behind `y`", **REPAIR),
    Case("columns, not reshaped", networks.columns, FLAT, FAULTY, "output `y` has 2 axes", "y",
         "structure: Reshape `y` is only in the original: ", "Reshape is put behind `y`", **REPAIR),
    Case("columns, flattened", networks.columns, FLATTENED, FAULTY, "output `y` has 2 axes", "y",
         "structure: Reshape `y` is only in the converted model: ", "Reshape is put behind `y`", **REPAIR),
    Case("a softmax added", networks.classes, {"end": "Softmax <axis = -1>"}, FAULTY,
         "the conversion added a Softmax (compared as probabilities:"),
    Case("a softmax removed", networks.classes, {}, FAULTY, ("the conversion removed a Softmax (compared "
                                                             "as probabilities:"),
         source={"end": "Softmax <axis = -1>"}),
    Case("a layout that's undone", networks.turned_pictures, {"perm": [0, 3, 1, 2]}, reason=OTHER_SIGNATURE),
    Case("a layout that's undone, strictly", networks.turned_pictures, {"perm": [0, 3, 1, 2]}, FAULTY,
         options={"strict_signature": True}),
    Case("a layout that's undone wrongly", networks.turned_pictures, {"perm": [0, 3, 2, 1]}, FAULTY, "", "t",
         "axes (0, 3, 2, 1) of the input are exchanged", "`t` has perm (0, 3, 1, 2)", **REPAIR),

    # Outputs of types that NumPy hasn't, or that are none.
    *(Case(made, odd_modules.odd_output, {"made": made}, source={"made": made}, options=ROWS, **ANSWERS)
      for made in odd_modules.ODD_OUTPUTS),
    *(Case(f"{made}, scaled", odd_modules.odd_output, {"made": made, "scale": 1.5}, FAULTY, "relative error 50 %",
           source={"made": made}, options=ROWS) for made in odd_modules.ODD_OUTPUTS),
    *_narrow(),

    # Outputs that have as many rows as values make them have.
    Case("boxes", ragged_networks.detector),
    Case("boxes, rounded otherwise", ragged_networks.detector, {"kernel": 1.0000003}),
    Case("above zero", ragged_networks.above_zero),
    Case("picked", ragged_networks.picked),
    Case("boxes, overlap", ragged_networks.detector, {"overlap": 0.2}, FAULTY, "rows for sample", "suppress",
         "iou_threshold", "the iou_threshold of `suppress` is 0.5", **REPAIR),
    Case("boxes, least score", ragged_networks.detector, {"least": 0.6}, FAULTY, "rows for sample", "suppress",
         "score_threshold"),
    Case("boxes, most", ragged_networks.detector, {"most": 2}, FAULTY, "rows for sample", "suppress",
         "max_output_boxes_per_class"),
    Case("boxes, by center", ragged_networks.detector, {"center": 1}, FAULTY, "rows for sample", "suppress",
         "center_point_box 1 in the converted model"),
    Case("boxes, scaled", ragged_networks.detector, {"kernel": 1.2}, FAULTY, "relative error", "features",
         "scaled by 1.2"),
    Case("boxes, scores scaled", ragged_networks.detector, {"later": 1.2}, FAULTY, "relative error", "logits",
         "scaled by 1.2"),
    Case("above zero, scaled", ragged_networks.above_zero, {"weight": 1.3}, FAULTY, "relative error", "y", "operand"),
    Case("picked, threshold", ragged_networks.picked, {"threshold": 0.1}, FAULTY, "rows for sample", "choose",
         "operand"),
    Case("picked, turned", ragged_networks.picked, {"turned": True}, FAULTY, ("the rows are the same, "
                                                                              "but in another order"), "lain",
         "steps [-1]"),
    Case("boxes of each sample", networks.overlapping, {"overlap": 0.4}, FAULTY, "", "chosen",
         ("iou_threshold (overlap) of `chosen` is 0.4 in the converted model, 0.5 in "
          "the original"), source={"overlap": 0.5}),

    # Networks that chance writes.
    *(Case(name, networks.odd_network, {"case": name}, source={"case": name}, options={"samples": 2})
      for name in networks.ODD_NETWORKS),
    *(Case(f"{name}, {new}", networks.odd_network, {"case": name, "old": old, "new": new}, FAULTY,
           source={"case": name}, options={"samples": 2})
      for name, old, new in (
          ("an output without rows", "ReduceSum", "ReduceMean"), ("a constant output", "Abs (k)", "Neg (k)"),
          ("a stored output", "{1, -2}", "{1, -3}"), ("numbers without axes", "Mul", "Add"))),

    # Classifiers, trees and encoders of tables.
    Case("labels", ml_networks.classifier),
    Case("labels, no map", ml_networks.classifier, {"zipmap": False}),
    Case("labels in texts, no map", ml_networks.classifier, {"labels": TEXTS, "zipmap": False},
         source={"labels": TEXTS}),
    Case("trees", ml_networks.trees),
    Case("categories", ml_networks.categories),
    Case("a sequence", ml_networks.sequence),
    Case("counts", ml_networks.counts),
    Case("labels, a coefficient", ml_networks.classifier, {"coefficients": (0.9, -0.4, 3.0, -0.8, 0.6, -0.1)}, FAULTY,
         "", "linear", "coefficients[2] 3"),
    Case("labels, keys exchanged", ml_networks.classifier, {"keys": (1, 0, 2)}, FAULTY, "", "zipmap",
         "classlabels_int64s[0] 1"),
    Case("labels, other keys", ml_networks.classifier, {"keys": (1, 2, 3)}, FAULTY, "", "zipmap",
         "a map with the keys 1, 2, 3"),
    Case("labels in texts, exchanged", ml_networks.classifier, {"labels": OTHERS, "keys": TEXTS}, FAULTY, "",
         "linear", ("classlabels_strings[0] versicolor in the converted model, setosa in "
                    "the original"), source={"labels": TEXTS}),
    Case("trees, threshold", ml_networks.trees, {"threshold": 320.0}, FAULTY, "", "trees",
         "nodes_values[0] 320 in the converted model, 300 in the original"),
    Case("trees, weight", ml_networks.trees, {"weight": 1.5}, FAULTY, "", "trees", "target_weights[0] 1.5"),
    Case("trees, mode", ml_networks.trees, {"mode": "BRANCH_GT"}, FAULTY, "", "trees", "nodes_modes[0] BRANCH_GT"),
    Case("categories, values", ml_networks.categories, {"values": (1.0, 2.5, 4.0)}, FAULTY, "", "encoder",
         "values_floats"),
    Case("a sequence, factor", ml_networks.sequence, {"factor": 2.5}, FAULTY, "", "double", "operand"),
    Case("a sequence, factor, no places", ml_networks.sequence, {"factor": 2.5, "places": False}, FAULTY, "",
         "double", "operand", source={"places": False}),
    Case("counts, vocabulary", ml_networks.counts, {"vocabulary": ("b", "a", "c")}, FAULTY, "", "rows",
         "string_vocabulary"),

    # Tolerances that were given, for answers and layers.
    *(Case(f"a scaled layer within {given or 'nothing'}", networks.image_network, {"dense": 1.02}, says, told, layer,
           "", repaired, options=given, **REPAIR)
      for given, says, told, layer, repaired in (
          ({}, FAULTY, "", "scores", WEIGHT.format("scores")),
          ({"rtol": 0.2}, "equivalent", "not counted: `scores`", "", ""),
          ({"rtol": 0.001}, FAULTY, "", "scores", WEIGHT.format("scores")),
          ({"atol": 10.0}, "equivalent", "not counted: `scores`", "", ""))),

    # Tolerances of outputs and of types.
    Case("boxes moved", networks.boxes_and_scores, MOVED, FAULTY),
    Case("boxes moved within", networks.boxes_and_scores, MOVED, options={"tolerance": "boxes:atol=0.5"}, **REPAIR),
    *(Case(f"boxes moved within {given}", networks.boxes_and_scores, MOVED, says, options={"tolerance": given},
           **ANSWERS)
      for given, says in (
          ({"boxes": {"atol": 0.5}}, "equivalent"),
          ("boxes:atol=0.1", FAULTY),
          ("scores:atol=0.5", FAULTY),
          ("float32:atol=0.5", "equivalent"),
          (["float32:atol=0.5", "boxes:atol=0.1"], FAULTY),  # its name before its type
          (["atol=0.5", "boxes:relative_l2=0.5"], "equivalent"),
          ("float16:atol=0.5", FAULTY))),

    # Decoders with a cache.
    Case("a decoder, its cache exchanged", decoder, {"change": swapped}, FAULTY, "", "present_value", "structure: ",
         "the inputs 0 and 1 of `present_value` are exchanged", **REPAIR),
    Case("a decoder, a heavier word", decoder, {"change": heavier}, FAULTY, "", "logits", "parameters: ",
         WEIGHT.format("logits"), **REPAIR),
    Case("a merged decoder", merged, {"rows": 3}),

    # Shapes that hold a batch.
    *(Case(f"{place} holds {shape}", networks.batched, {place: shape}, FAULTY,
           (f"batches of {fail} fail: the converted model runs with a batch of {shape[0]} only: "
            f"`{layer}`"), layer, "structure: ",
           f"`{layer}` has shape ({', '.join(map(str, [0, *shape[1:]]))})", **REPAIR)
      for place, shape, layer, fail in (
          ("second", [4, 2, 3], "back", "1, 2, 3, 8, 16"), ("second", [7, 2, 3], "back", "1, 2, 3, 8, 16"),
          ("first", [1, 8], "flat", "2, 3, 8, 16"), ("first", [16, 8], "flat", "1, 2, 3, 8"))),
    *(Case(f"samples mixed by {shape}", networks.batched, {"second": shape}, FAULTY, "", "back",
           f"`back` (Reshape) has the fixed shape {shape}", "`back` has shape (0, -1, 3)", **REPAIR)
      for shape in ([4, -1, 3], [1, -1, 3], [2, -1, 3])),
    Case("both mix samples", networks.batched, {"second": [1, -1, 3]}, source={"second": [1, -1, 3]}),
    Case("both hold a batch", networks.batched, {"second": [4, 2, 3]}, source={"second": [4, 2, 3]}, **ANSWERS),

    # Samples behind time steps.
    *(Case(f"time steps of {data} from {source} to {target}", networks.time_major, STEPS[target], says,
           source=STEPS[source], options={"data": networks.steps(inside=data == "inside")}, **ANSWERS)
      for data in ("front", "inside")
      for source, target, says in (
          ("open", "open", "equivalent"), ("open", "fixed", "equivalent"), ("fixed", "open", "equivalent"),
          ("open", "wrong", FAULTY), ("open", "lone", "equivalent"))),
    *(Case(f"time steps from {source} to {target}", networks.time_major, STEPS[target], says, source=STEPS[source],
           **ANSWERS)
      for source, target, says in (
          ("steps", "fixed", "equivalent"), ("steps", "wrong-fixed", FAULTY), ("fixed", "wrong", FAULTY),
          ("lone", "fixed", "equivalent"))),
    *(Case(f"time steps, {target} repaired", networks.time_major, STEPS[target], FAULTY, "", "y", "parameters: ",
           WEIGHT.format("y"), options={"data": networks.steps(inside=True)}, **REPAIR)
      for target in ("wrong", "wrong-fixed")),

    # What only unusual inputs show.
    *(Case(name, networks.unusual, {"text": other}, says, source={"text": one}, **ANSWERS)
      for name, one, other, says in UNUSUAL),

    # Another arithmetic, which excuses what it makes alone.
    Case("a device in bfloat16", device_outputs.scores, {"wrong": ""}, "noise",
         "as if the device computed in bfloat16", options=PICTURES_OF_DEVICES, **ANSWERS),
    *(Case(f"a device in bfloat16, {wrong}", device_outputs.scores, {"wrong": wrong}, FAULTY,
           options=PICTURES_OF_DEVICES)
      for wrong in ("no numbers", "one that's none", "zeros behind the samples that are simulated",
                    "samples exchanged", "classes exchanged", "one column")),
    Case("weights in bfloat16", device_outputs.narrow, {"rounded": True}, FAULTY, options=PICTURES_OF_DEVICES),
    Case("weights in bfloat16, declared", device_outputs.narrow, {"rounded": True}, "noise",
         options={**PICTURES_OF_DEVICES, "arithmetic": "bfloat16"}),

    # One of two models takes bytes and prepares them itself.
    *(Case(f"bytes prepared as {recipe}, {side}", prepared,
           reason=f"{side}.onnx-{place} takes bytes, and {other}.onnx-{1 - place} gets the same pictures "
           f"preprocessed by `{recipe}`",
           **{side: {"recipe": recipe}})
      for recipe in PREPARATIONS for place, (side, other) in enumerate((("source", "target"), ("target", "source")))),
    Case("bytes, wrong weights", prepared, {"recipe": "torchvision", "wrong": "inner"}, FAULTY, "", "c",
         "parameters: ", WEIGHT.format("c"), **REPAIR),

    # TorchScript, which takes what its source takes.
    *(Case(f"{layout} and a script, times {scale}", networks.convolution_or_script,
           {"script": scale, "layout": layout}, says, source={"layout": layout})
      for layout in ("NCHW", "NHWC") for scale, says in ((1.0, "equivalent"), (1.5, FAULTY))),
]
# fmt: on
