"""Reductions and searches along axes: PyTorch's in the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from conrepair.networks.torch_call import Rule, TorchCall, TorchPart, axis
from conrepair.networks.torch_elementwise import binary

__all__ = ["REDUCTIONS", "RULES"]

REDUCTIONS = {
    "mean": "ReduceMean",
    "sum": "ReduceSum",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "prod": "ReduceProd",
}


def _reduction(op: str) -> Rule:
    def rule(call: TorchCall) -> TorchPart | None:
        given = call["self"]
        if call["dtype"] is not None and call["dtype"] != call.value(given).dtype:
            return None
        return TorchPart(op, {"axes": _axes(call), "keepdims": bool(call["keepdim"])}, [given])

    return rule


def _axes(call: TorchCall) -> tuple[int, ...]:
    rank, wanted = call.rank(call["self"]), call["dim"]
    if wanted is None or wanted == []:
        return tuple(range(rank))
    places = wanted if isinstance(wanted, list | tuple) else [wanted]
    return tuple(sorted(axis(place, rank) for place in places))


def _norm(call: TorchCall) -> TorchPart | None:
    order = call["ord"] if call["p"] is None else call["p"]
    same = call["dtype"] is None or call["dtype"] == call.value(call["self"]).dtype
    if not same or isinstance(order, torch.fx.Node) or (order is not None and float(order) != 2):
        return None
    return TorchPart("ReduceL2", {"axes": _axes(call), "keepdims": bool(call["keepdim"])}, [call["self"]])


def _extremum(op: str) -> Rule:
    """The largest values along an axis, or of two tensors; with their positions it's another operator."""

    def rule(call: TorchCall) -> TorchPart | None:
        if call["other"] is not None:
            return binary(op)(call)
        if isinstance(call.value(), tuple | list) and call.is_read(1):
            return None
        return TorchPart(f"Reduce{op}", {"axes": _axes(call), "keepdims": bool(call["keepdim"])}, [call["self"]])

    return rule


def _position(op: str) -> Rule:
    def rule(call: TorchCall) -> TorchPart | None:
        if call["dim"] is None:
            return None
        place = axis(call["dim"], call.rank(call["self"]))
        return TorchPart(op, {"axis": place, "keepdims": bool(call["keepdim"])}, [call["self"]])

    return rule


def _cumulative_sum(call: TorchCall) -> TorchPart | None:
    return TorchPart("CumSum", {"axis": axis(call["dim"], call.rank(call["self"]))}, [call["self"]])


RULES: Mapping[str, Rule] = {
    **{name: _reduction(op) for name, op in REDUCTIONS.items()},
    **dict.fromkeys(("linalg_vector_norm", "norm"), _norm),
    "max": _extremum("Max"),
    "min": _extremum("Min"),
    "argmax": _position("ArgMax"),
    "argmin": _position("ArgMin"),
    "cumsum": _cumulative_sum,
}
