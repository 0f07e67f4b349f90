"""RNN, GRU and LSTM by PyTorch's own kernels, so that an exported program keeps them as one operator each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from conrepair.formats.converters.torch_domain.integer_operators import listed
from conrepair.formats.onnx.passes.sizes import Sizes

_GATES = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}
"""For each of PyTorch's gates, its place among ONNX's."""


def rnn(*operands: Any, activations: Sequence[Any] | None = None, **attributes: Any) -> Any:
    """ONNX's RNN with tanh or relu.

    Raises:
        NotImplementedError: for what PyTorch's kernel doesn't have.
    """
    names = {str(name).lower() for name in activations or ["tanh"]}
    if names not in ({"tanh"}, {"relu"}):
        raise NotImplementedError(f"RNN: PyTorch's kernel has tanh or relu for all directions, not {sorted(names)}")
    return _run("RNN", getattr(torch, f"rnn_{names.pop()}"), *operands, **attributes)


def gru(
    *operands: Any, activations: Sequence[Any] | None = None, linear_before_reset: int = 0, **attributes: Any
) -> Any:
    """ONNX's GRU with its default activations, and `linear_before_reset`.

    Raises:
        NotImplementedError: for what PyTorch's kernel doesn't have.
    """
    _check_activations("GRU", activations, ["sigmoid", "tanh"])
    if not linear_before_reset:
        raise NotImplementedError("GRU: PyTorch's kernel has the reset gate behind the linear layer only")
    return _run("GRU", torch.gru, *operands, **attributes)


def lstm(*operands: Any, activations: Sequence[Any] | None = None, **attributes: Any) -> Any:
    """ONNX's LSTM with its default activations, without peepholes.

    Raises:
        NotImplementedError: for what PyTorch's kernel doesn't have.
    """
    _check_activations("LSTM", activations, ["sigmoid", "tanh", "tanh"])
    if attributes.pop("input_forget", 0) or (len(operands) > 7 and operands[7] is not None):
        raise NotImplementedError("LSTM: PyTorch's kernel has no peepholes and no coupled gates (input_forget)")
    return _run("LSTM", torch.lstm, *operands[:7], **attributes)


def _check_activations(kind: str, names: Sequence[Any] | None, wanted: list[str]) -> None:
    given = [str(name).lower() for name in names or wanted]
    if given != wanted * (len(given) // len(wanted)):
        raise NotImplementedError(f"{kind}: PyTorch's kernel has the activations {wanted}, not {given}")


def _run(
    kind: str,
    kernel: Any,
    x: Tensor,
    weight: Tensor,
    recurrent: Tensor,
    bias: Tensor | None = None,
    lengths: Sizes | None = None,
    *states: Tensor | None,
    outputs: int = 1,
    direction: str = "forward",
    layout: int = 0,
    clip: float | None = None,
    hidden_size: int | None = None,
) -> Any:
    """Compute all directions of one layer.

    Args:
        kind: The operator.
        kernel: PyTorch's.
        x: [steps, batch, width], or [batch, steps, width] where `layout` is 1.
        weight: [directions, gates * hidden, width].
        recurrent: [directions, gates * hidden, hidden].
        bias: [directions, 2 * gates * hidden].
        lengths: Of the sequences.
        *states: At the beginning, [directions, batch, hidden]; layout 1 has the batch first.
        outputs: How many are wanted.
        direction: forward, reverse or bidirectional.
        layout: See `x`.
        clip: Not supported.
        hidden_size: Also to be seen from the weights.
    """
    x = x.transpose(0, 1) if layout else x
    if clip is not None:
        raise NotImplementedError(f"{kind}: PyTorch's kernel has no clip")
    if lengths is not None and any(length != x.shape[0] for length in listed(lengths)):
        raise NotImplementedError(f"{kind}: sequences shorter than the longest (sequence_lens) are not supported")
    directions, hidden = recurrent.shape[0], recurrent.shape[2]
    begin = [
        x.new_zeros(directions, x.shape[1], hidden) if state is None else state.transpose(0, 1) if layout else state
        for state in (*states, None, None)[: 2 if kind == "LSTM" else 1]
    ]
    parameters = [part for index in range(directions) for part in _parameters(kind, index, weight, recurrent, bias)]
    backwards = direction == "reverse"
    result, *final = kernel(
        x.flip(0) if backwards else x,
        begin if kind == "LSTM" else begin[0],
        parameters,
        bias is not None,
        1,  # layers
        0.0,  # dropout
        False,  # training
        directions == 2,
        False,  # batch first
    )
    result = result.flip(0) if backwards else result
    result = result.reshape(*result.shape[:2], directions, hidden)
    all_outputs = [result.transpose(0, 1) if layout else result.transpose(1, 2)]
    all_outputs += [state.transpose(0, 1) if layout else state for state in final]
    return tuple(all_outputs[:outputs]) if outputs > 1 else all_outputs[0]


def _parameters(kind: str, index: int, weight: Tensor, recurrent: Tensor, bias: Tensor | None) -> list[Tensor]:
    """Those of one direction, as PyTorch's kernels take them."""
    halves = [] if bias is None else list(bias[index].chunk(2))
    return [_rearranged(kind, tensor) for tensor in (weight[index], recurrent[index], *halves)]


def _rearranged(kind: str, tensor: Tensor) -> Tensor:
    parts = tensor.chunk(len(_GATES[kind]))
    return torch.cat([parts[gate] for gate in _GATES[kind]])


RECURRENT: dict[str, tuple[Callable[..., Any], set[int]]] = {
    "GRU": (gru, {4}),
    "LSTM": (lstm, {4}),
    "RNN": (rnn, {4}),
}
"""With the position of the operand that is integers, the lengths of sequences."""
