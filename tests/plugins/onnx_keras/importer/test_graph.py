import json

import keras
import numpy as np
import onnx
import onnx_ir
import pytest
from onnx_cases import (
    check_model,
    check_text,
    imported,
    layers_of,
    node_model,
    random,
    run_keras,
    run_onnx,
    text_model,
)

from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.graph import import_model

CNN = """c1 = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (image, w1, b1) n1 = BatchNormalization (c1, s, o, m, v)
    r1 = Relu (n1) d1 = Conv <group = 4, pads = [1, 1, 1, 1]> (r1, wd) a1 = Add (d1, r1)
    p1 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a1) g = GlobalAveragePool (p1) f = Flatten (g)
    k = MatMul (f, w2) l = Add (k, b2) probabilities = Softmax <axis = 1> (l)"""
IMAGE = {"image": random(3, 2, 8, 8)}


def cnn(**settings):
    """A small network of the usual layers, with a name for each node."""
    constants = {
        "w1": random(4, 2, 3, 3, low=-0.5, high=0.5, seed=1),
        "b1": random(4, seed=2),
        "s": random(4, low=0.5, high=1.5, seed=3),
        "o": random(4, seed=4),
        "m": random(4, seed=5),
        "v": random(4, low=0.5, high=2, seed=6),
        "wd": random(4, 1, 3, 3, low=-0.5, high=0.5, seed=7),
        "w2": random(4, 3, low=-1, high=1, seed=8),
        "b2": random(3, seed=9),
    }
    model = text_model(
        CNN, IMAGE, constants, outputs=["probabilities"], symbolic={"image": ["n", 2, 8, 8]}, **settings
    )
    for node in model.graph.node:
        node.name = f"/features/{node.op_type}_{node.output[0]}"
    return model


def load(model, **options):
    return import_model(onnx_ir.from_proto(model), **options)


def input_names(network):
    return [tensor.name for tensor in network.inputs]


def output_names(network):
    return [tensor._keras_history.operation.name for tensor in network.outputs]


# --- layers --------------------------------------------------------------------------------------------------


def test_a_network_of_real_layers():
    network = check_model(cnn(), IMAGE)
    assert {"Conv2D", "BatchNormalization", "DepthwiseConv2D", "Dense"} <= set(layers_of(network))
    assert layers_of(network).count("Transpose") == 1
    assert network.count_params() == 4 * 2 * 9 + 4 + 4 * 4 + 4 * 9 + 4 * 3 + 3


def test_channels_last_inputs_leave_no_transpose():
    network = imported(cnn(), channels_last_inputs=True)
    assert network.inputs[0].shape == (None, 8, 8, 2)
    assert "Transpose" not in layers_of(network)
    answer = run_keras(network, {"image": IMAGE["image"].transpose(0, 2, 3, 1)})
    np.testing.assert_allclose(answer[0], run_onnx(cnn(), IMAGE)[0], rtol=1e-5, atol=1e-6)


def test_channels_last_outputs():
    model = text_model("y = Conv (x, w)", {"x": random(2, 3, 5, 6)}, {"w": random(4, 3, 2, 2)})
    feeds = {"x": random(2, 3, 5, 6)}
    network = imported(model, channels_last_inputs=True, channels_last_outputs=True)
    assert network.outputs[0].shape == (2, 4, 5, 4)
    assert layers_of(network) == ["Conv2D"]
    answer = run_keras(network, {"x": feeds["x"].transpose(0, 2, 3, 1)})[0]
    np.testing.assert_allclose(answer.transpose(0, 3, 1, 2), run_onnx(model, feeds)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_layouts_are_a_matter_of_three_axes(shape):
    model = node_model("Relu", {"x": random(*shape)})
    network = imported(model, channels_last_inputs=True, channels_last_outputs=True)
    assert network.inputs[0].shape == network.outputs[0].shape == shape


def test_weights_can_be_trained():
    """Every weight of the file that is trainable in spirit is a trainable variable."""
    network = load(cnn())
    shapes = sorted(tuple(weight.shape) for weight in network.trainable_weights)
    assert shapes == sorted([(3, 3, 2, 4), (4,), (4,), (4,), (3, 3, 4, 1), (4, 3), (3,)])
    generator = np.random.default_rng(1)
    images = generator.normal(size=(64, 2, 8, 8)).astype(np.float32)
    labels = (images.mean((1, 2, 3)) > 0).astype(np.int64)
    network.compile(keras.optimizers.Adam(0.03), "sparse_categorical_crossentropy")
    losses = network.fit(images, labels, epochs=6, batch_size=16, verbose=0, shuffle=False).history["loss"]
    assert losses[-1] < 0.8 * losses[0]


# --- names ---------------------------------------------------------------------------------------------------


def test_names():
    network = load(cnn())
    names = [operation.name for operation in network.operations]
    assert len(set(names)) == len(names)
    assert input_names(network) == ["image"]
    assert output_names(network) == ["probabilities"]
    assert "features_Conv_c1" in names
    assert "features_BatchNormalization_n1" in names
    assert {"features_MatMul_k", "features_Add_l"} & set(names)


def test_only_names_of_inputs_and_outputs_have_dots():
    """PyTorch, where Keras computes with it, has no parameters with a dot in their names."""
    model = text_model("h = MatMul (x, w) y = Relu (h)", {"x": random(2, 3)}, {"w": random(3, 4)})
    product, activation = model.graph.node
    product.name, activation.name = "/layers.0/MatMul", "/layers.0/Relu"
    model.graph.input[0].name = product.input[0] = "x.1"
    model.graph.output[0].name = activation.output[0] = "y.1"
    network = load(model)
    assert input_names(network) == ["x.1"]
    assert output_names(network) == ["y.1"]
    inner = {operation.name for operation in network.operations} - {"x.1", "y.1"}
    assert inner == {"layers_0_MatMul", "layers_0_Relu"}


def test_inputs_and_outputs_keep_their_names_whatever_nodes_are_called():
    model = text_model("t = Neg (x) y = Exp (t) z = Abs (y)", {"x": random(3)}, outputs=["y", "z"])
    for node, name in zip(model.graph.node, ["x", "z", "y"], strict=True):
        node.name = name
    network = load(model)
    assert input_names(network) == ["x"]
    assert output_names(network) == ["y", "z"]
    unnamed = load(text_model("y = Exp (x)", {"x": random(3)}))
    assert (input_names(unnamed), output_names(unnamed)) == (["x"], ["y"])


def test_equal_names_become_different():
    model = text_model("a = Neg (x) b = Exp (a) c = Abs (b) y = Relu (c)", {"x": random(3)})
    for node, name in zip(model.graph.node, ["same", "same", "SAME", "a/b:c d"], strict=True):
        node.name = name
    names = [operation.name for operation in load(model).operations]
    assert {"same", "same_2", "SAME_3", "a_b_c_d"} <= set(names)


def test_importing_twice_gives_the_same():
    one, two = load(cnn()), load(cnn())
    assert one.to_json() == two.to_json()
    for first, second in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(first, second)


# --- inputs and outputs --------------------------------------------------------------------------------------


def test_two_inputs_and_two_outputs_keep_their_order():
    text = "s = Sub (b, a) p = Mul (a, b)"
    feeds = {"b": random(2, 3), "a": random(2, 3, seed=1)}
    network = check_text(text, feeds, outputs=["p", "s"])
    assert (input_names(network), output_names(network)) == (["b", "a"], ["p", "s"])


def test_an_output_that_is_an_input():
    check_text("y = Neg (x)", {"x": random(2, 3)}, outputs=["x", "y"])
    check_text("y = Identity (x)", {"x": random(2, 3, 4)})


def test_a_product_that_is_added_to_itself():
    """No row stands behind it."""
    check_text("m = MatMul (x, z) y = Add (m, m)", {"x": random(2, 3, 4), "z": random(2, 4, 5)})


def test_the_same_output_under_two_names():
    check_text("y = Neg (x) z = Identity (y)", {"x": random(2, 3)}, outputs=["y", "z"])


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_constant_outputs(dtype):
    check_text("y = Neg (x) z = Identity (c)", {"x": random(2, 3)}, {"c": random(4, dtype=dtype)}, outputs=["y", "z"])


def test_constant_outputs_whatever_the_input_holds():
    feeds = {"x": np.array([np.nan, np.inf], np.float32)}
    check_text("y = Neg (x) z = Identity (c)", feeds, {"c": random(4)}, outputs=["z", "y"])


def test_an_input_that_nobody_uses():
    check_text("y = Neg (x)", {"x": random(2, 3), "unused": random(4)})


def test_an_initializer_used_twice():
    constants = {"w": random(3, 3)}
    check_text("a = MatMul (x, w) b = Relu (a) c = MatMul (b, w) y = Add (c, w)", {"x": random(3, 3)}, constants)


def test_an_initializer_that_is_also_an_input():
    """Until IR version 3 initializers had to be listed as inputs."""
    model = text_model("y = Add (x, c)", {"x": random(2, 3)}, {"c": random(3)})
    model.graph.input.append(onnx.helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, [3]))
    network = load(model)
    assert input_names(network) == ["x"]
    np.testing.assert_array_equal(run_keras(network, {"x": random(2, 3)})[0], random(2, 3) + random(3))


def test_constants_are_folded():
    text = """a = Constant <value = float[2] {1.0, 2.0}> () b = Exp (a) s = Shape (b) c = ConstantOfShape (s)
        d = Add (b, c) y = Mul (x, d)"""
    assert layers_of(check_text(text, {"x": random(3, 2)})) == ["Multiply"]


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64", "uint8", "bool"])
def test_element_types_of_inputs_and_outputs(dtype):
    network = check_text("y = Identity (x)", {"x": random(2, 3, dtype=dtype)})
    assert str(network.inputs[0].dtype) == dtype


# --- sizes ---------------------------------------------------------------------------------------------------


def test_any_batch():
    network = load(cnn())
    for batch in (1, 5):
        feeds = {"image": random(batch, 2, 8, 8, seed=batch)}
        np.testing.assert_allclose(run_keras(network, feeds)[0], run_onnx(cnn(), feeds)[0], rtol=1e-5, atol=1e-6)


def test_sizes_can_be_fixed():
    model = text_model("y = Relu (x)", {"x": random(2, 3)}, symbolic={"x": ["n", "m"]})
    assert load(model, sizes={"x": ["n", 7]}).inputs[0].shape == (None, 7)
    assert load(model, sizes={"x": [4, 7]}).outputs[0].shape == (4, 7)
    with pytest.raises(ConversionError, match=r"\[1, 2, 3\] doesn't fit input x"):
        load(model, sizes={"x": [1, 2, 3]})


def test_an_input_without_a_shape_is_refused():
    model = text_model("y = Relu (x)", {"x": random(2, 3)})
    model.graph.input[0].type.tensor_type.ClearField("shape")
    del model.graph.output[:], model.graph.value_info[:]
    model.graph.output.append(onnx.ValueInfoProto(name="y"))
    with pytest.raises(ConversionError, match="shape of its input x"):
        load(model)
    assert load(model, sizes={"x": [2, 3]}).outputs[0].shape == (2, 3)


# --- refusals ------------------------------------------------------------------------------------------------


def test_an_operator_without_a_rule_is_named():
    model = node_model("Relu", {"x": random(2, 3)})
    model.graph.node[0].op_type, model.graph.node[0].domain = "Convolve", "my.domain"
    model.opset_import.append(onnx.helper.make_opsetid("my.domain", 1))
    with pytest.raises(ConversionError, match=r"Convolve\(\) of node 'the_Relu' can't be imported: there is no rule"):
        load(model)


def test_an_attribute_that_no_rule_reads_is_refused():
    model = node_model("Relu", {"x": random(2, 3)})
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("new_feature", 1))
    with pytest.raises(
        ConversionError, match=r"Relu\(new_feature=1\) of node 'the_Relu'.*new_feature isn't supported"
    ):
        load(model)


def test_an_attribute_at_its_default_is_no_matter():
    model = node_model("ConvTranspose", {"x": random(1, 2, 3, 3)}, {"w": random(2, 2, 2, 2)}, kernel_shape=[2, 2])
    load(model)


def test_inputs_of_other_types_are_refused():
    model = node_model("Identity", {"x": random(2)})
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    with pytest.raises(ConversionError, match="input x"):
        load(model)


# --- files ---------------------------------------------------------------------------------------------------


def test_keras_file(tmp_path):
    network = load(cnn())
    network.save(tmp_path / "cnn.keras")
    again = keras.models.load_model(tmp_path / "cnn.keras")
    np.testing.assert_array_equal(run_keras(again, IMAGE)[0], run_keras(network, IMAGE)[0])
    assert "conrepair" not in json.dumps(json.loads(network.to_json()))


def test_external_data(tmp_path):
    onnx.save(cnn(), tmp_path / "cnn.onnx", save_as_external_data=True, location="cnn.data", size_threshold=0)
    assert (tmp_path / "cnn.data").stat().st_size > 0
    network = import_model(onnx_ir.load(tmp_path / "cnn.onnx"))
    np.testing.assert_allclose(run_keras(network, IMAGE)[0], run_onnx(cnn(), IMAGE)[0], rtol=1e-5, atol=1e-6)


def test_saved_model(tmp_path):
    import tensorflow as tf

    load(cnn()).export(tmp_path / "saved", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(
        np.asarray(loaded.serve([IMAGE["image"]])), run_onnx(cnn(), IMAGE)[0], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("last", [False, True])
def test_tflite(last):
    import tensorflow as tf

    network = load(cnn(), sizes={"image": [3, 2, 8, 8]}, channels_last_inputs=last)
    content = tf.lite.TFLiteConverter.from_keras_model(network).convert()
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    image = IMAGE["image"].transpose(0, 2, 3, 1) if last else IMAGE["image"]
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    answer = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(answer, run_onnx(cnn(), IMAGE)[0], rtol=1e-5, atol=1e-6)


def test_constants_beside_inputs_without_cells():
    check_text("y = Relu (k) z = Identity (x)", {"x": random(0, 3)}, {"k": random(2)}, outputs=("y", "z"))


def test_sums_without_cells():
    check_text("y = Add (x, k)", {"x": random(0, 7)}, {"k": random(0, 7)})
    check_text("y = Add (x, k)", {"x": random(2, 7, 0)}, {"k": random(7, 1)})


def test_constant_outputs_of_large_numbers_without_a_sign():
    check_text("y = Identity (k) z = Relu (x)", {"x": random(2)}, {"k": np.array([2**63 + 5], np.uint64)},
               outputs=("y", "z"))  # fmt: skip
