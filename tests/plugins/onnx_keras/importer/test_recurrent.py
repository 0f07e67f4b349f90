import warnings

import keras
import numpy as np
import onnx
import pytest
from crossed import crossed
from onnx_cases import check, check_model, layers_of, node_model, random, together
from torch_cases import exported

from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.graph import import_model

STEPS, BATCH, INPUT, HIDDEN = 6, 3, 4, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LAYERS = {"RNN": "SimpleRNN", "GRU": "GRU", "LSTM": "LSTM"}
X = {"x": random(STEPS, BATCH, INPUT)}
OPERATORS = sorted(GATES)


def weights(operator, directions=1):
    gates = GATES[operator] * HIDDEN
    return {
        "w": random(directions, gates, INPUT, seed=1),
        "r": random(directions, gates, HIDDEN, low=-0.7, high=0.7, seed=2),
        "b": random(directions, 2 * gates, seed=3),
    }


def check_network(operator, feeds=X, constants=None, directions=1, **settings):
    outputs = settings.pop("outputs", 3 if operator == "LSTM" else 2)
    tensors = {**weights(operator, directions), **(constants or {})}
    order = ["x", "w", "r", "b", "lengths", "h", "c"]
    inputs = [name if name in feeds or name in tensors else "" for name in order]
    while not inputs[-1]:
        inputs.pop()
    return check(operator, feeds, tensors, inputs=inputs, outputs=outputs, hidden_size=HIDDEN, atol=1e-5, **settings)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(operator, direction):
    directions = 2 if direction == "bidirectional" else 1
    network = check_network(operator, directions=directions, direction=direction)
    assert layers_of(network).count(LAYERS[operator]) == directions


@together("operator", OPERATORS)
@together("outputs", [1, 2, 3])
def test_fewer_outputs(operator, outputs):
    if operator == "LSTM" or outputs < 3:  # others have no cell state
        check_network(operator, outputs=outputs)


@together("operator", OPERATORS)
@together("direction", ["forward", "bidirectional"])
@together("constant", [True, False])
def test_initial_states(operator, direction, constant):
    directions = 2 if direction == "bidirectional" else 1
    states = {"h": random(directions, BATCH, HIDDEN, seed=4)}
    if operator == "LSTM":
        states["c"] = random(directions, BATCH, HIDDEN, seed=5)
    feeds, constants = (X, states) if constant else ({**X, **states}, {})
    check_network(operator, feeds, constants, directions, direction=direction)


def test_only_one_of_the_initial_states():
    check_network("LSTM", constants={"c": random(1, BATCH, HIDDEN)})


@pytest.mark.parametrize("operator", OPERATORS)
def test_zeros_as_initial_state_are_left_out(operator):
    network = check_network(operator, constants={"h": np.zeros((1, BATCH, HIDDEN), np.float32)})
    assert layers_of(network).count("Add") == 0


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_batch_and_sequence_may_be_open(operator, direction):
    directions = 2 if direction == "bidirectional" else 1
    network = check_network(
        operator, directions=directions, direction=direction, symbolic={"x": ["steps", "batch", INPUT]}
    )
    assert network.inputs[0].shape == (None, None, INPUT)


def test_batch_first_by_the_reference():
    """ONNX Runtime has no layout 1, ONNX's reference implementation does."""
    for operator in OPERATORS:
        constants = weights(operator)
        feeds = {"x": random(BATCH, STEPS, INPUT)}
        model = node_model(operator, feeds, constants, outputs=2, hidden_size=HIDDEN, layout=1)
        swapped = {"x": feeds["x"].transpose(1, 0, 2)}
        plain = node_model(operator, swapped, constants, outputs=2, hidden_size=HIDDEN)
        from onnx_cases import imported, run_keras, run_onnx

        y, state = run_onnx(plain, swapped)
        got = run_keras(imported(model), feeds)
        np.testing.assert_allclose(got[0], y.transpose(2, 0, 1, 3), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[1], state.transpose(1, 0, 2), rtol=1e-4, atol=1e-5)


@together("operator", OPERATORS)
@together("direction", ["forward", "reverse", "bidirectional"])
@together("constant", [True, False])
def test_lengths(operator, direction, constant):
    directions = 2 if direction == "bidirectional" else 1
    lengths = {"lengths": np.array([STEPS, 2, 4], np.int32)}
    feeds, constants = (X, lengths) if constant else ({**X, **lengths}, {})
    check_network(operator, feeds, constants, directions, direction=direction)


def test_full_lengths_need_no_mask():
    network = check_network("LSTM", constants={"lengths": np.full(BATCH, STEPS, np.int32)})
    assert "LessEqual" not in layers_of(network)


@together("before", [0, 1])
@together("direction", ["forward", "reverse"])
def test_gru_resets_before_or_after(before, direction):
    check_network("GRU", linear_before_reset=before, direction=direction)


@together("operator", OPERATORS)
def test_without_bias(operator):
    constants = weights(operator)
    del constants["b"]
    check(operator, X, constants, outputs=2, hidden_size=HIDDEN)


@together(
    "settings",
    [
        {"activations": ["Relu"]},
        {"activations": ["Softsign"]},
        {"activations": ["Elu"], "activation_alpha": [0.7]},
        {"activations": ["LeakyRelu"], "activation_alpha": [0.3]},
        {"activations": ["ThresholdedRelu"], "activation_alpha": [0.5]},
        {"activations": ["HardSigmoid"], "activation_alpha": [0.2], "activation_beta": [0.4]},
        {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.25]},
    ],
)
def test_activations(settings):
    check_network("RNN", **settings)


@together("operator", ["GRU", "LSTM"])
def test_activations_of_gates(operator):
    more = ["Tanh"] if operator == "LSTM" else []
    check_network(
        operator,
        activations=["HardSigmoid", "Tanh", *more],
        activation_alpha=[0.2],
        activation_beta=[0.5],
        **({"linear_before_reset": 1} if operator == "GRU" else {}),
    )


def test_activations_of_two_directions():
    check_network(
        "RNN",
        directions=2,
        direction="bidirectional",
        activations=["Tanh", "LeakyRelu"],
        activation_alpha=[0.2],
    )


@pytest.mark.parametrize(
    ("operator", "settings", "reason"),
    [
        ("RNN", {"clip": 0.5}, "clip"),
        ("LSTM", {"input_forget": 1}, "couple"),
        ("LSTM", {"activations": ["Sigmoid", "Tanh", "Relu"]}, "one activation"),
        ("RNN", {"activations": ["ScaledTanh"], "activation_alpha": [2.0], "activation_beta": [1.0]}, "scaledtanh"),
    ],
)
def test_refusals(operator, settings, reason):
    import onnx_ir

    model = node_model(operator, X, weights(operator), outputs=1, hidden_size=HIDDEN, **settings)
    with pytest.raises(ConversionError, match=reason):
        import_model(onnx_ir.from_proto(model))


def test_peepholes_are_refused():
    import onnx_ir

    constants = {**weights("LSTM"), "p": random(1, 3 * HIDDEN)}
    model = node_model(
        "LSTM", X, constants, inputs=["x", "w", "r", "b", "", "", "", "p"], outputs=1, hidden_size=HIDDEN
    )
    with pytest.raises(ConversionError, match="peepholes"):
        import_model(onnx_ir.from_proto(model))


# --- whole networks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "batch_first", "dynamo"),
    crossed(
        ["LSTM", "GRU", "RNN"],
        [True, False],
        [True, False],
        quick=[
            ("LSTM", True, True), ("GRU", False, False), ("GRU", True, False), ("RNN", False, False),
        ],
    ),
)  # fmt: skip
def test_torch(kind, batch_first, dynamo, tmp_path):
    import torch

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.recurrent = getattr(torch.nn, kind)(
                INPUT, HIDDEN, num_layers=2, bidirectional=True, batch_first=batch_first
            )
            self.head = torch.nn.Linear(2 * HIDDEN, 3)

        def forward(self, x):
            y, _ = self.recurrent(x)
            return self.head(y)

    torch.manual_seed(0)
    network = Network().eval()
    x = random(BATCH, STEPS, INPUT) if batch_first else random(STEPS, BATCH, INPUT)
    names = ["batch", "steps"] if batch_first else ["steps", "batch"]
    model = exported(network, [x], [dict(enumerate(names))], tmp_path / "model.onnx", dynamo=dynamo)
    result = check_model(model, {"x": x})
    if kind != "RNN" or not dynamo:  # the current exporter takes nn.RNN apart
        assert layers_of(result).count(LAYERS[kind]) == 4
    with torch.no_grad():
        expected = network(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(result.predict_on_batch(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "both_ways"), crossed(["LSTM", "GRU"], [False, True], quick=[("LSTM", True), ("GRU", False)])
)
def test_keras_by_tf2onnx(kind, both_ways):
    import tf2onnx

    keras.utils.set_random_seed(1)
    layer = getattr(keras.layers, kind)(HIDDEN, return_sequences=True)
    inputs = keras.Input((STEPS, INPUT), name="x")
    y = (keras.layers.Bidirectional(layer) if both_ways else layer)(inputs)
    network = keras.Model(inputs, keras.layers.Dense(3)(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, _ = tf2onnx.convert.from_keras(network, opset=17)
    onnx.checker.check_model(model)
    x = random(BATCH, STEPS, INPUT)
    result = check_model(model, {model.graph.input[0].name: x})
    if kind == "LSTM":  # tf2onnx leaves Keras's GRU as a loop
        assert layers_of(result).count(kind) == 1 + both_ways
    np.testing.assert_allclose(result.predict_on_batch(x), network.predict_on_batch(x), rtol=1e-4, atol=1e-5)
