"""Operators that move, cut, join and repeat values: PyTorch's in the vocabulary."""

from __future__ import annotations

import numpy as np
from torch.fx import Node

from conrepair.formats.networks.parts import Rules, operand_roles
from conrepair.formats.torch.read.call import TorchCall, TorchPart, axis, sizes
from conrepair.formats.torch.read.elementwise import operand
from conrepair.ground.graph.layer_graph import Attribute, Parameter

_RESHAPES = (
    *("view", "_unsafe_view", "reshape", "flatten", "squeeze", "unsqueeze", "unflatten", "view_as", "reshape_as"),
)
_SAME = ("contiguous", "clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "positive", "resolve_conj")
_DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_PADS = ("reflection", "replication")
_RESIZES = (
    *(name.format(axes) for name in ("upsample_nearest{}d", "_upsample_nearest_exact{}d") for axes in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"),
)
_RESIZE_MODES = {"nearest": "nearest", "_nearest": "nearest", "bilinear": "linear", "linear": "linear",
                 "trilinear": "linear", "bicubic": "cubic"}  # fmt: skip


RULES = Rules()


@RULES.of("Identity", *_SAME)
def _identity(op: str, call: TorchCall) -> TorchPart:
    return TorchPart(op, {}, [operand(call)])


@RULES.of("Identity", *_DROPOUTS)
def _dropout(op: str, call: TorchCall) -> TorchPart | None:
    return None if call["train"] and call["p"] else _identity(op, call)


@RULES.of("Reshape", *_RESHAPES)
@RULES.of("Expand", "expand", "expand_as", "broadcast_to")
def _shaped(op: str, call: TorchCall) -> TorchPart:
    return TorchPart(op, {"shape": call.shape()}, [operand(call)])


@RULES.of("Transpose", "permute")
def _permute(op: str, call: TorchCall) -> TorchPart:
    rank = call.rank(call["self"])
    return TorchPart(op, {"perm": tuple(axis(place, rank) for place in call["dims"])}, [call["self"]])


@RULES.of("Transpose", "transpose", "swapaxes")
def _transpose(op: str, call: TorchCall) -> TorchPart:
    names = ("dim0", "dim1") if call.name == "transpose" else ("axis0", "axis1")
    order = list(range(call.rank(call["self"])))
    one, other = (axis(call[name], len(order)) for name in names)
    order[one], order[other] = order[other], order[one]
    return TorchPart(op, {"perm": tuple(order)}, [call["self"]])


@RULES.of("Transpose", "t", "numpy_T", "mT")
def _reversed_axes(op: str, call: TorchCall) -> TorchPart:
    rank = call.rank(call["self"])
    kept = rank - 2 if call.name == "mT" else 0
    perm = (*range(kept), *reversed(range(kept, rank)))
    return TorchPart(op, {"perm": perm}, [call["self"]])


def _pieces(call: TorchCall) -> tuple[list[Node | None], dict[str, Parameter]]:
    """Tensors, with None where constants stand; these are `operand`, `operand_1`, ..."""
    constants = [piece for piece in call["tensors"] if not call.depends(piece)]
    inputs = [piece if call.depends(piece) else None for piece in call["tensors"]]
    return inputs, dict(zip(operand_roles(len(constants)), map(call.parameter, constants), strict=True))


@RULES.of("Concat", "cat", "concat", "concatenate")
def _concatenate(op: str, call: TorchCall) -> TorchPart:
    inputs, parameters = _pieces(call)
    return TorchPart(op, {"axis": axis(call["dim"], call.rank())}, inputs, parameters)


@RULES.of("Stack", "stack")
def _stack(op: str, call: TorchCall) -> TorchPart | None:
    if not all(map(call.depends, call["tensors"])):
        return None
    return TorchPart(op, {"axis": axis(call["dim"], call.rank())}, call["tensors"])


@RULES.of("Split", "split", "split_with_sizes", "chunk", "tensor_split")
def _split(op: str, call: TorchCall) -> TorchPart | None:
    given = call["self"]
    place = axis(call["dim"], call.rank(given))
    pieces = [piece.shape[place] for piece in call.value()]
    return TorchPart(op, {"axis": place, "sizes": sizes(pieces)}, [given], outputs=range(len(pieces)))


@RULES.of("Slice", "slice", "narrow")
def _slice(op: str, call: TorchCall) -> TorchPart | None:
    given = call["self"]
    place = axis(call["dim"], call.rank(given))
    size = call.value(given).shape[place]
    start, end = (call["start"], call["end"]) if call.name == "slice" else (call["start"], None)
    if call.name == "narrow" and isinstance(start, int):
        start = axis(start, size) if isinstance(size, int) else start
        end = start + call["length"] if isinstance(call["length"], int) else None
        if end is None:
            return None
    if not all(bound is None or isinstance(bound, int) for bound in (start, end)) or not isinstance(size, int):
        return None
    start, end, step = slice(start, end, call["step"] or 1).indices(size)
    if (start, end, step) == (0, size, 1):  # as `x[:, None]` has one for each axis that's taken as it is
        return TorchPart("Identity", {}, [given])
    return TorchPart(op, {"starts": (start,), "ends": (end,), "axes": (place,), "steps": (step,)}, [given])


@RULES.of("Slice", "flip")
def _flip(op: str, call: TorchCall) -> TorchPart | None:
    """Backwards: the end in front of an axis is -size - 1."""
    given, shape = call["self"], call.shape(call["self"])
    if shape is None:
        return None
    axes = tuple(axis(place, len(shape)) for place in call["dims"])
    starts, ends = tuple(shape[place] - 1 for place in axes), tuple(-shape[place] - 1 for place in axes)
    return TorchPart(op, {"starts": starts, "ends": ends, "axes": axes, "steps": (-1,) * len(axes)}, [given])


@RULES.of("Gather", "select")
def _select(op: str, call: TorchCall) -> TorchPart | None:
    """One place of an axis, which is left out: what Gather does with one index."""
    given, index = call["self"], call["index"]
    if not isinstance(index, int):
        return None
    place = axis(call["dim"], call.rank(given))
    size = call.value(given).shape[place]
    number = axis(index, size) if isinstance(size, int) else index
    indices = Parameter("", (), "int64", lambda: np.array(number, np.int64))
    return TorchPart(op, {"axis": place}, [given], {"indices": indices})


@RULES.of("Gather", "index_select")
def _index_select(op: str, call: TorchCall) -> TorchPart:
    place = axis(call["dim"], call.rank(call["self"]))
    return TorchPart(op, {"axis": place}, *call.sorted_by_role({"table": call["self"], "indices": call["index"]}))


@RULES.of("Tile", "repeat", "tile")
def _repeat(op: str, call: TorchCall) -> TorchPart | None:
    repeats, rank = call["dims"] if call["repeats"] is None else call["repeats"], call.rank(call["self"])
    known = sizes(repeats)
    if known is None or len(known) > rank:
        return None
    return TorchPart(op, {"repeats": (1,) * (rank - len(known)) + known}, [call["self"]])


@RULES.of("Pad", "pad", "constant_pad_nd", *(f"{kind}_pad{axes}d" for kind in _PADS for axes in (1, 2, 3)))
def _pad(op: str, call: TorchCall) -> TorchPart | None:
    default = "reflect" if "reflection" in call.name else "replicate" if "replication" in call.name else "constant"
    mode = PAD_MODES[call["mode"] or default]
    amounts = sizes(call["pad"] if call["pad"] is not None else call["padding"])
    if amounts is None:
        return None
    rank = call.rank(call["self"])
    begins, ends = [0] * rank, [0] * rank
    for position in range(len(amounts) // 2):  # from the last axis on
        begins[rank - 1 - position], ends[rank - 1 - position] = amounts[2 * position], amounts[2 * position + 1]
    value = float(call["value"] or 0.0)
    return TorchPart(op, {"pads": (*begins, *ends), "mode": mode, "value": value}, [call["self"]])


@RULES.of("Resize", *_RESIZES)
def _resize(op: str, call: TorchCall) -> TorchPart | None:
    given = operand(call)
    before, after = call.shape(given), call.shape()
    if before is None or after is None:
        return None
    kind = call.name.removeprefix("_").removeprefix("upsample_").rstrip("0123d")
    exact = "exact" in kind
    mode = _RESIZE_MODES[kind.removesuffix("_exact").replace("nearest_exact", "nearest")]
    factors = call["scale_factors"]
    spatial = len(after) - 2
    ratios = [float(factor) for factor in factors] if factors else [
        float(new / old) for new, old in zip(after[2:], before[2:], strict=True)
    ]  # fmt: skip
    attributes: dict[str, Attribute] = {"mode": mode, "scales": (1.0, 1.0, *ratios[:spatial])}
    if mode == "nearest":
        # PyTorch's index is floor(i * step), or floor((i + 0.5) * step) for "exact".
        places = ("half_pixel", "round_prefer_ceil") if exact else ("asymmetric", "floor")
        attributes["coordinate_transformation_mode"], attributes["nearest_mode"] = places
    elif call["align_corners"]:
        attributes["coordinate_transformation_mode"] = "align_corners"
    return TorchPart(op, attributes, [given])


@RULES.of("DepthToSpace", "pixel_shuffle")
def _depth_to_space(op: str, call: TorchCall) -> TorchPart:
    return TorchPart(op, {"blocksize": int(call["upscale_factor"]), "mode": "CRD"}, [call["self"]])


@RULES.of("Einsum", "einsum")
def _einsum(op: str, call: TorchCall) -> TorchPart:
    inputs, parameters = _pieces(call)
    return TorchPart(op, {"equation": str(call["equation"])}, inputs, parameters)
