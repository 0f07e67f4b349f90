import numpy as np
import pytest
from onnx_cases import check, check_text, imported, layers_of, random, text_model, together

from conrepair.ground.runtime.errors import ConversionError


def gemm(trans_a, trans_b, bias, dtype="float32"):
    a, b = random(5, 3, dtype=dtype), random(3, 4, dtype=dtype, seed=1)
    feeds, constants = {"a": a.T if trans_a else a}, {"b": b.T if trans_b else b}
    if bias is not None:
        constants["c"] = random(*bias, dtype=dtype, seed=2)
    return feeds, constants


@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
@pytest.mark.parametrize("bias", [None, (), (1,), (4,), (1, 1), (1, 4), (5, 1), (5, 4)], ids=str)
def test_gemm(transposed, bias):
    feeds, constants = gemm(*transposed, bias)
    network = check("Gemm", feeds, constants, transA=transposed[0], transB=transposed[1])
    assert "Dense" in layers_of(network)


@together("bias", [None, (4,), (5, 1)])
@together("given", ["b", "bc", "c", "abc"])
def test_gemm_with_factors(bias, given):
    """Any of the matrices may be given by the user."""
    feeds, constants = gemm(0, 1, bias)
    arrays = feeds | constants
    feeds = {name: array for name, array in arrays.items() if name in given or name == "a"}
    constants = {name: array for name, array in arrays.items() if name not in feeds}
    check("Gemm", feeds, constants, inputs=list(arrays), transB=1, alpha=0.3, beta=-1.7)


def test_gemm_with_a_constant_on_the_left():
    a, b = random(5, 3), random(3, 4)
    check("Gemm", {"b": b}, {"a": a, "c": random(4)}, inputs=["a", "b", "c"], alpha=2.0)


@together("opset", [7, 9, 11])
def test_gemm_of_older_opsets(opset):
    feeds, constants = gemm(0, 0, (4,))
    check("Gemm", feeds, constants, opset=opset)


@together("dtype", ["float64", "float16"])
def test_gemm_of_other_types(dtype):
    feeds, constants = gemm(0, 1, (4,), dtype)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == "float64" else {"rtol": 1e-2, "atol": 1e-2}
    check("Gemm", feeds, constants, transB=1, alpha=0.5, **tolerance)


def test_gemm_with_open_batch():
    feeds, constants = gemm(0, 1, (4,))
    network = check("Gemm", feeds, constants, transB=1, symbolic={"a": ["n", 3]})
    assert network.inputs[0].shape == (None, 3)


MATRICES = [
    ((4, 3), (3, 5)),
    ((2, 4, 3), (3, 5)),
    ((2, 4, 3), (2, 3, 5)),
    ((6, 2, 4, 3), (2, 3, 5)),
    ((2, 1, 4, 3), (7, 3, 5)),
    ((4, 3), (2, 3, 5)),
    ((3,), (3, 5)),
    ((3,), (2, 3, 5)),
    ((4, 3), (3,)),
    ((2, 4, 3), (3,)),
    ((3,), (3,)),
]


@together("shapes", MATRICES)
@together("constant", [None, "a", "b"])
def test_matmul(shapes, constant):
    arrays = {"a": random(*shapes[0]), "b": random(*shapes[1], seed=1)}
    feeds = {name: array for name, array in arrays.items() if name != constant}
    check("MatMul", feeds, {constant: arrays[constant]} if constant else None, inputs=["a", "b"])


@together("dtype", ["float64", "int32", "int64", "uint32"])
@together("constant", [False, True])
def test_matmul_of_other_types(dtype, constant):
    a, b = {"a": random(4, 3, dtype=dtype, low=-9, high=9)}, {"b": random(3, 5, dtype=dtype, low=-9, high=9)}
    check("MatMul", a, b) if constant else check("MatMul", a | b)


def test_matmul_with_open_sizes():
    check("MatMul", {"a": random(2, 4, 3)}, {"b": random(3, 5)}, symbolic={"a": ["n", "s", 3]})
    feeds = {"a": random(2, 4, 3), "b": random(2, 3, 4)}
    check("MatMul", feeds, symbolic={"a": ["n", "s", 3], "b": ["n", 3, "s"]})


@together("axes", [(0, 2, 3, 1), (0, 1, 3, 2), (3, 2, 1, 0)])
def test_matmul_behind_a_convolution(axes):
    shape = [(2, 3, 4, 5)[axis] for axis in axes]
    check_text(
        f"a = Conv (x, w) t = Transpose <perm = {list(axes)}> (a) y = MatMul (t, m)",
        {"x": random(2, 2, 5, 6)},
        {"w": random(3, 2, 2, 2), "m": random(shape[-1], 4)},
    )


# --- MatMul and Add ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [(5,), (1, 5)])
@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (3,)])
@pytest.mark.parametrize("text", ["y = Add (m, row)", "y = Add (row, m)"])
def test_bias(row, shape, text):
    network = check_text(
        f"m = MatMul (x, kernel) {text}", {"x": random(*shape)}, {"kernel": random(3, 5), "row": random(*row)}
    )
    if len(shape) > 1:
        assert layers_of(network) == ["Dense"]


@together("row", [(1,), (), (4, 1), (4, 5), (1, 1, 5), (2, 1, 1)])
def test_what_is_not_a_bias(row):
    feeds, constants = {"x": random(2, 4, 3)}, {"kernel": random(3, 5), "row": random(*row)}
    check_text("m = MatMul (x, kernel) y = Add (m, row)", feeds, constants)


def test_a_product_used_twice_keeps_its_own_output():
    constants = {"kernel": random(3, 5), "row": random(5)}
    text = "m = MatMul (x, kernel) a = Add (m, row) y = Mul (a, m)"
    check_text(text, {"x": random(4, 3)}, constants)
    check_text("m = MatMul (x, kernel) y = Add (m, row)", {"x": random(4, 3)}, constants, outputs=["y", "m"])
    check_text("m = MatMul (x, kernel) y = Add (m, m)", {"x": random(4, 3)}, constants)


def test_bias_of_integers():
    constants = {"kernel": random(3, 5, dtype="int32"), "row": random(5, dtype="int32")}
    check_text("m = MatMul (x, kernel) y = Add (m, row)", {"x": random(4, 3, dtype="int32")}, constants)


def test_bias_of_a_constant_product():
    constants = {"one": random(4, 3), "kernel": random(3, 5), "row": random(5)}
    text = "m = MatMul (one, kernel) a = Add (m, row) y = Mul (a, x)"
    check_text(text, {"x": random(4, 5)}, constants)


# --- Einsum, Det ---------------------------------------------------------------------------------------------


@together(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("bhwc,hkc->bhwk", [(2, 3, 4, 5), (3, 6, 5)]),
        ("...ij,...jk->...ik", [(2, 6, 3, 4), (2, 6, 4, 5)]),
        ("Bij, Bjk -> Bik", [(2, 3, 4), (2, 4, 5)]),
        ("ij->ji", [(3, 4)]),
        ("ij->", [(3, 4)]),
        ("ii->i", [(3, 3)]),
        ("ij,ij->", [(3, 4), (3, 4)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]),
    ],
)
def test_einsum(equation, shapes):
    feeds = {f"x{index}": random(*shape, seed=index) for index, shape in enumerate(shapes)}
    check("Einsum", feeds, equation=equation)


@together("shape", [(3, 3), (2, 4, 4), (2, 2, 3, 3)])
def test_determinant(shape):
    check("Det", {"x": random(*shape)})


def test_products_of_large_and_small_numbers():
    a, b = random(4, 64) * np.float32(1e3), random(64, 8) * np.float32(1e-3)
    check("MatMul", {"a": a}, {"b": b}, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("product", ["MatMul (q, t)", 'Einsum <equation = "nsd,ndt->nst"> (q, t)'])
def test_sizes_behind_products_of_open_sizes(product):
    """They are known by name, so that a reshape of them is."""
    text = f"""t = Transpose <perm = [0, 2, 1]> (x) q = Relu (x) m = {product} s = Shape (m)
        e = Concat <axis = 0> (s, one) y = Reshape (m, e)"""
    symbolic = {"x": ["n", "s", 4]}
    model = text_model(text, {"x": random(2, 3, 4)}, {"one": np.array([1])}, symbolic=symbolic)
    with pytest.raises(ConversionError, match=r"\['n', 's', 's', '1'\]"):
        imported(model)
    check_text(text.replace("(m, e)", "(m, s)"), {"x": random(2, 3, 4)}, {"one": np.array([1])}, symbolic=symbolic)


@together("dtype", ["int32", "int64"])
@together("shapes", [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((3,), (2, 3, 4)), ((2, 3), (3,)), ((3,), (3,))])
def test_products_of_integers_are_exact(dtype, shapes):
    large = 2**25 + 1 if dtype == "int32" else 2**40 + 1
    one, two = (random(*shape, dtype=dtype, low=-9, high=9) for shape in shapes)
    one.flat[0] = large
    check("MatMul", {"x": one, "y": two})
    check("MatMul", {"x": one}, {"y": two})


def test_an_einsum_of_integers_is_refused():
    with pytest.raises(ConversionError, match="float32 instead of int64"):
        check("Einsum", {"x": random(2, 3, dtype="int64")}, equation="ij->ji")


def test_determinant_of_half_precision():
    check("Det", {"x": random(2, 3, 3, dtype="float16")}, rtol=1e-2, atol=1e-2)
