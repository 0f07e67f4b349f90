import numpy as np
import onnx
import pytest
from onnx_cases import check_model, check_text, imported, random, text_model

from conrepair.ground.runtime.errors import ConversionError

X = {"x": random(3, 4)}


def values(**arrays):
    return {name: np.asarray(array) for name, array in arrays.items()}


# --- If ------------------------------------------------------------------------------------------------------

IF = """y = If (c) <
    then_branch = then () => (float[3,4] t) { t = Relu (x) },
    else_branch = other () => (float[3,4] e) { m = Mul (x, x) e = Neg (m) }>"""


@pytest.mark.parametrize("condition", [True, False])
def test_if(condition):
    check_text(IF, X, values(c=condition))
    check_text(IF, X, values(c=[condition]))


@pytest.mark.parametrize("rank", [3, 4])
def test_if_the_shape_decides(rank):
    shape = [2, 1, 4, 1][:rank]
    text = """d = Shape (x) r = Size (d) c = Equal (r, three) y = If (c) <
        then_branch = then () => (t) { t = Squeeze (x, one) }, else_branch = other () => (e) { e = Neg (x) }>"""
    symbolic = {"x": ["n", *shape[1:]]}
    check_text(text, {"x": random(*shape)}, values(three=np.int64(3), one=np.int64([1])), symbolic=symbolic)


def test_if_the_batch_decides():
    text = """d = Shape <end = 1> (x) c = Equal (d, three) y = If (c) <
        then_branch = then () => (t) { t = Relu (x) }, else_branch = other () => (e) { e = Neg (x) }>"""
    for rows in (3, 2):
        check_text(text, {"x": random(rows, 4)}, values(three=np.int64(3)), symbolic={"x": ["n", 4]})


@pytest.mark.parametrize("condition", [True, False])
def test_if_an_input_decides(condition):
    check_text(IF, X | values(c=condition))
    constants = """y = If (c) <then_branch = a () => (float[2] t) { t = Constant <value = float[2] {1.0, 2.0}> () },
        else_branch = b () => (float[2] e) { e = Constant <value = float[2] {3.0, 4.0}> () }>"""
    check_text(constants, values(c=[condition]))


def test_if_an_input_decides_on_the_shape_is_refused():
    text = """y = If (c) <then_branch = a () => (t) { t = Relu (x) },
        else_branch = b () => (e) { e = Transpose (x) }>"""
    with pytest.raises(ConversionError, match=r"If\(.*node 'y'.*cond must be constant.*different shapes"):
        imported(text_model(text, X | values(c=True)))


def test_if_within_if_with_constants_of_its_own():
    text = """y = If (c) <then_branch = a () => (float[3,4] t) {
            k = Constant <value = float {2.0}> ()
            t = If (d) <then_branch = b () => (float[3,4] u) { u = Mul (x, k) },
                else_branch = f () => (v) { v = Neg (x) }>
        }, else_branch = g () => (float[3,4] e) { e = Neg (x) }>"""
    for inner in (True, False):
        check_text(text, X, values(c=True, d=inner))


def test_branches_with_several_outputs_and_constants():
    text = """y, z = If (c) <
        then_branch = a () => (float[3,4] t, float s) { t = Relu (x) s = Constant <value_float = 2.0> () },
        else_branch = b () => (float[3,4] e, float f) { e = Neg (x) f = Constant <value_float = 3.0> () }>"""
    for condition in (True, False):
        check_text(text, X, values(c=condition), outputs=["y", "z"])


# --- Loop ----------------------------------------------------------------------------------------------------

LOOP = """y, rows = Loop (m, c, x) <
    body = body (int64 i, bool go, float[3,4] s) => (bool on, float[3,4] t, float[3,4] r) {
    f = Cast <to = 1> (i) a = Add (s, f) t = Mul (a, half) r = Neg (t) on = Identity (go) }>"""


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("outputs", [["y"], ["y", "rows"], ["rows"]], ids=str)
def test_loop(rounds, outputs):
    constants = values(m=np.int64(rounds), c=True, half=np.float32(0.5))
    check_text(LOOP, X, constants, outputs=outputs)


@pytest.mark.parametrize(
    "constants", [{"m": np.int64(0), "c": np.array(True)}, {"m": np.int64(3), "c": np.array(False)}]
)
def test_loop_without_rounds(constants):
    constants = constants | {"half": np.float32(0.5)}
    check_text(LOOP, X, constants, outputs=["y"])
    with pytest.raises(ConversionError, match=r"Loop\(body=a graph\).*shapes of its rows"):
        imported(text_model(LOOP, X, constants, outputs=["y", "rows"]))


def test_loop_that_ends_itself():
    text = """y, n = Loop (, c, x, zero) <
        body = body (int64 i, bool go, float[3,4] s, int64 k) => (bool on, float[3,4] t, int64 l) {
            l = Add (k, one) on = Less (l, four) t = Mul (s, s) }>"""
    constants = values(c=True, zero=np.int64(0), one=np.int64(1), four=np.int64(4))
    check_text(text, X, constants, outputs=["y", "n"])


def test_loop_that_looks_at_values_is_refused():
    text = """y = Loop (m, c, x) <body = body (int64 i, bool go, float[3,4] s) => (bool on, float[3,4] t) {
        t = Mul (s, s) a = ReduceMax <keepdims = 0> (t) on = Less (a, ten) }>"""
    with pytest.raises(ConversionError, match=r"Loop\(.*whether it goes on depends on values"):
        imported(text_model(text, X, values(m=np.int64(3), c=True, ten=np.float32(10))))


def test_endless_loop_is_refused():
    text = """y = Loop (, c, x) <body = body (int64 i, bool go, float[3,4] s) => (bool on, float[3,4] t) {
        t = Identity (s) on = Identity (go) }>"""
    with pytest.raises(ConversionError, match="more than 1024 rounds"):
        imported(text_model(text, X, values(c=True)))


def test_loop_over_a_batch_is_refused():
    text = "d = Shape (x) m = Gather (d, zero) " + LOOP
    constants = values(zero=np.int64(0), c=True, half=np.float32(0.5))
    with pytest.raises(ConversionError, match=r"Loop\(.*M must be constant"):
        imported(text_model(text, X, constants, symbolic={"x": ["n", 4]}))


# --- Scan ----------------------------------------------------------------------------------------------------


def scan_model(**attributes):
    text = """y, rows = Scan <num_scan_inputs = 1, body = body (float[4] s, float[4] r) => (float[4] t, float[4] o) {
        t = Add (s, r) o = Mul (t, r) }> (state, x)"""
    feeds = {"state": random(4, seed=1), "x": random(*((4, 3) if attributes.get("scan_input_axes") else (3, 4)))}
    model = text_model(text, feeds, outputs=["y", "rows"])
    model.graph.node[0].attribute.extend(onnx.helper.make_attribute(*item) for item in attributes.items())
    del model.graph.value_info[:]
    return model, feeds


@pytest.mark.parametrize(
    "attributes",
    [{}, {"scan_input_directions": [1]}, {"scan_output_directions": [1]}, {"scan_input_axes": [1]},
     {"scan_output_axes": [1]}, {"scan_output_axes": [-1], "scan_input_axes": [-1], "scan_input_directions": [1]}],
    ids=str,
)  # fmt: skip
def test_scan(attributes):
    check_model(*scan_model(**attributes))


def test_scan_over_an_open_sequence_is_refused():
    model, _ = scan_model()
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "s"
    with pytest.raises(ConversionError, match=r"Scan\(.*must be known"):
        imported(model)


def test_scan_over_rows_that_are_known():
    text = """y, rows = Scan <num_scan_inputs = 1, body = body (float[4] s, float[4] r) => (float[4] t, float[4] o) {
        t = Add (s, r) o = Neg (r) }> (x, table)"""
    feeds, constants = {"x": random(4)}, {"table": random(3, 4, seed=2)}
    check_text(text, feeds, constants, outputs=["y", "rows"])
