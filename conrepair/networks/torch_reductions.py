"""Reductions and searches along axes: PyTorch's in the vocabulary."""

from __future__ import annotations

import torch

from conrepair.networks.parts import Rules
from conrepair.networks.torch_call import TorchCall, TorchPart, axis
from conrepair.networks.torch_elementwise import binary

__all__ = ["REDUCTIONS", "RULES"]

REDUCTIONS = {
    "mean": "ReduceMean",
    "sum": "ReduceSum",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "prod": "ReduceProd",
}


RULES = Rules()


def _reduction(op: str, call: TorchCall) -> TorchPart | None:
    if call["dtype"] is not None and call["dtype"] != call.value(call["self"]).dtype:
        return None
    return TorchPart(op, {"axes": _axes(call), "keepdims": bool(call["keepdim"])}, [call["self"]])


RULES.named(REDUCTIONS, _reduction)


def _axes(call: TorchCall) -> tuple[int, ...]:
    rank, wanted = call.rank(call["self"]), call["dim"]
    if wanted is None or wanted == []:
        return tuple(range(rank))
    places = wanted if isinstance(wanted, list | tuple) else [wanted]
    return tuple(sorted(axis(place, rank) for place in places))


@RULES.of("ReduceL2", "linalg_vector_norm", "norm")
def _norm(op: str, call: TorchCall) -> TorchPart | None:
    order = call["ord"] if call["p"] is None else call["p"]
    if isinstance(order, torch.fx.Node) or (order is not None and float(order) != 2):
        return None
    return _reduction(op, call)


@RULES.of("Max", "max")
@RULES.of("Min", "min")
def _extremum(op: str, call: TorchCall) -> TorchPart | None:
    """The largest values along an axis, or of two tensors; with their positions it's another operator."""
    if call["other"] is not None:
        return binary(op, call)
    if isinstance(call.value(), tuple | list) and call.is_read(1):
        return None
    return _reduction(f"Reduce{op}", call)


@RULES.of("ArgMax", "argmax")
@RULES.of("ArgMin", "argmin")
def _position(op: str, call: TorchCall) -> TorchPart | None:
    if call["dim"] is None:
        return None
    place = axis(call["dim"], call.rank(call["self"]))
    return TorchPart(op, {"axis": place, "keepdims": bool(call["keepdim"])}, [call["self"]])


@RULES.of("CumSum", "cumsum")
def _cumulative_sum(op: str, call: TorchCall) -> TorchPart | None:
    return TorchPart(op, {"axis": axis(call["dim"], call.rank(call["self"]))}, [call["self"]])
