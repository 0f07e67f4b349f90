import keras
import numpy as np
import pytest
import sympy
from keras import ops
from onnx_cases import check_text, imported, layers_of, random, text_model, together

from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.values import ImportedTensor, channels_last, symbol
from conrepair_onnx_keras.importer.workspace import Workspace


def workspace():
    return Workspace(lambda graph, inputs: [])


def image(*shape):
    """A tensor [N, C, H, W] that is stored channels last."""
    order = channels_last(len(shape))
    stored = tuple(shape[axis] for axis in np.argsort(order))
    return ImportedTensor(keras.Input(batch_shape=stored), order, shape)


# --- names ---------------------------------------------------------------------------------------------------


def test_names_are_allowed_and_new():
    names = workspace()
    assert [names.unique(name) for name in ("/a/b", "a_b", "A_b", "a b", "", "__", "b-1.0")] == [
        "a_b", "a_b_2", "A_b_3", "a_b_4", "node", "node_2", "b-1.0",
    ]  # fmt: skip


def test_a_numbered_name_may_be_taken():
    names = workspace()
    assert [names.unique(name) for name in ("a_2", "a", "a", "a_2")] == ["a_2", "a", "a_3", "a_2_2"]


# --- layouts -------------------------------------------------------------------------------------------------


def test_what_lies_right_is_not_moved():
    space, value = workspace(), image(2, 3, 4, 5)
    assert space.stored(value, channels_last(4)) is value.stored


def test_a_transpose_is_written_once():
    space, value = workspace(), image(2, 3, 4, 5)
    assert space.stored(value) is space.stored(value)
    assert tuple(space.stored(value).shape) == (2, 3, 4, 5)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_constants_and_tensors_are_stored_alike(order):
    space, array = workspace(), random(2, 3, 4, 5)
    place = channels_last(4)
    tensor = ImportedTensor(keras.Input(batch_shape=(2, 4, 5, 3)), place, (2, 3, 4, 5))
    stored = space.stored(tensor, order)
    function = keras.Function(tensor.stored, stored) if stored is not tensor.stored else None
    given = array.transpose(np.argsort(place))
    answer = given if function is None else np.asarray(function(given))
    np.testing.assert_array_equal(answer, space.stored(array, order))


def test_axes_of_length_one_need_no_transpose():
    network = check_text(
        "a = Conv (x, w) p = GlobalAveragePool (a) y = Relu (p)",
        {"x": random(2, 2, 5, 6)},
        {"w": random(3, 2, 2, 2)},
        symbolic={"x": ["n", 2, "h", "w"]},
    )
    assert layers_of(network).count("Transpose") == 1


@pytest.mark.parametrize("shape", [(), (1,), (5,), (4, 5), (3, 1, 1), (3, 4, 5), (2, 3, 4, 5)])
def test_lower_ranks_broadcast_against_stored_axes(shape):
    space, value, array = workspace(), image(2, 3, 4, 5), random(*shape)
    order = channels_last(4)
    total = ops.subtract(value.stored, space.broadcastable(array, order))
    given = random(2, 3, 4, 5, seed=1)
    answer = np.asarray(keras.Function(value.stored, total)(given.transpose(np.argsort(order))))
    np.testing.assert_allclose(answer.transpose(order), given - array, rtol=1e-6)


def test_tensors_of_lower_rank_broadcast_likewise():
    space, value = workspace(), image(2, 3, 4, 5)
    other = keras.Input(batch_shape=(4, 5))
    row = space.broadcastable(ImportedTensor(other, (0, 1), (4, 5)), channels_last(4))
    assert tuple(row.shape) == (1, 4, 5, 1)
    turned = space.broadcastable(ImportedTensor(other, (1, 0), (5, 4)), (0, 1, 2))
    assert tuple(turned.shape)[-2:] == (5, 4)
    assert space.broadcastable(value, value.order) is value.stored


# --- sizes that only a run knows -----------------------------------------------------------------------------


def test_ones_of_an_open_size():
    space, n = workspace(), symbol("n")
    x = keras.Input(batch_shape=(3, None))
    space.remember(ImportedTensor(x, (0, 1), (3, n)))
    ones = keras.Function(x, space.ones([2, n, 1], "float32"))(np.zeros((3, 4), np.float32))
    np.testing.assert_array_equal(np.asarray(ones), np.ones((2, 4, 1)))


def test_a_size_that_no_tensor_has_is_refused():
    with pytest.raises(ConversionError, match=r"the size m is known only by name.*--input"):
        workspace().ones([symbol("m")], "float32")


@together("text", ["y = Mul (d, d)", "a = Add (d, one) y = Mul (a, d)", "a = Sub (d, one) y = Mul (a, two)"])
def test_sizes_can_be_measured(text):
    constants = {"one": np.array(1), "two": np.array(2)}
    for batch in (1, 4):
        check_text(f"d = Shape (x) {text}", {"x": random(batch, 3)}, constants, symbolic={"x": ["n", 3]})


def test_sizes_that_can_not_be_measured_are_refused():
    model = text_model(
        "d = Shape (x) y = Mod (d, two)", {"x": random(4, 3)}, {"two": np.array(2)}, symbolic={"x": ["n", 3]}
    )
    with pytest.raises(ConversionError, match=r"Mod\(n, 2\) can't be computed at run time"):
        imported(model)


def test_two_open_sizes_of_which_one_may_be_one():
    """What two open sizes broadcast to is a third."""
    text = "a = Add (x, z) d = Shape (a) y = Expand (one, d)"
    for first, second in ((4, 1), (1, 4), (4, 4)):
        feeds = {"x": random(first, 3), "z": random(second, 3)}
        constants = {"one": np.ones((1, 1), np.float32)}
        check_text(text, feeds, constants, outputs=["y", "d"], symbolic={"x": ["n", 3], "z": ["m", 3]})


def test_symbols_are_sizes():
    assert symbol("n") == symbol("n")
    assert sympy.Ge(symbol("n"), 0) == sympy.true
    assert sympy.Gt(symbol("n"), 0) not in (sympy.true, sympy.false)  # states of earlier steps may be empty


def test_the_batch_of_the_first_input_is_not_that_of_every_output():
    """As many rows are picked as there are indices, whatever the sizes are called."""
    feeds = {"x": random(4, 3), "i": np.array([[0], [1]])}
    text = "p = GatherND (x, i) d = Shape (p) y = Expand (one, d)"
    constants = {"one": np.ones((1, 1), np.float32)}
    check_text(text, feeds, constants, outputs=["y", "d"], symbolic={"x": [None, 3], "i": [None, 1]})
    check_text(text, feeds, constants, outputs=["y", "d"], symbolic={"x": ["n", 3], "i": ["m", 1]})
