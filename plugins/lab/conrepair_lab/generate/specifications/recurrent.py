"""Recurrent layers."""

from __future__ import annotations

from conrepair.ground.graph.operators import RECURRENT_ACTIVATIONS
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import Range
from conrepair_lab.generate.specifications.specification import operator

_ALPHA = ("Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu")
_BETA = ("Affine", "HardSigmoid", "ScaledTanh")
_FUNCTIONS = ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh", *_ALPHA)

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@operator(*_GATES)
def recurrent(s: Setting) -> None:
    gates = _GATES[s.op]
    s.maybe(s.choice, "layout", (0,))  # ONNX Runtime takes no others
    length, batch, features = s.input("X", rank=3).shape
    for size in (length, batch, features):
        s.require(size >= 1, "a sequence without elements")
    ways = 2 if s.choice("direction", ("forward", "reverse", "bidirectional")) == "bidirectional" else 1
    hidden = s.size_said("hidden_size")
    s.input("W", [ways, gates * hidden, features])
    s.input("R", [ways, gates * hidden, hidden])
    s.maybe(s.input, "B", [ways, 2 * gates * hidden])
    s.maybe(s.input, "sequence_lens", [batch], values=Range(0, length))
    for name in ("initial_h", "initial_c"):
        s.maybe(s.input, name, [ways, batch, hidden])
    s.maybe(s.input, "P", [ways, 3 * hidden])
    _activations(s, len(RECURRENT_ACTIVATIONS[s.op]) * ways)
    s.maybe(s.real, "clip", 0.01, float("inf"), usual=(1.0, 5.0))
    for flag in ("linear_before_reset", "input_forget"):
        s.maybe(s.flag, flag)
    _outputs(s, [length, ways, batch, hidden])


def _activations(s: Setting, count: int) -> None:
    if s.has("activations"):
        names = s.choices("activations", _FUNCTIONS, count)
        for attribute, those in (("activation_alpha", _ALPHA), ("activation_beta", _BETA)):
            number = sum(name in those for name in names)
            if number and s.has(attribute):
                s.reals(attribute, 0.01, 1.0, number)


def _outputs(s: Setting, shape: list[object]) -> None:
    kept = [s.has(name) for name in ("Y", "Y_h", "Y_c")]
    s.require(any(kept), "nothing is made")
    while not kept[-1]:
        kept.pop()
    for place, there in enumerate(kept):
        if there:
            s.output(shape[1:] if place else shape)
        else:
            s.no_output()
