import numpy as np
import onnx
import onnx_ir
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_cases import check, check_model, imported, node_model, random, run_keras, together

from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.graph import import_model

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 4, 5, 7, 6
FOUR = {
    "q": random(BATCH, HEADS, QUERIES, WIDTH, seed=1),
    "k": random(BATCH, HEADS, KEYS, WIDTH, seed=2),
    "v": random(BATCH, HEADS, KEYS, 3, seed=3),
}
THREE = {
    "q": random(BATCH, QUERIES, HEADS * WIDTH, seed=1),
    "k": random(BATCH, KEYS, HEADS * WIDTH, seed=2),
    "v": random(BATCH, KEYS, HEADS * 3, seed=3),
}
FLAT = {"q_num_heads": HEADS, "kv_num_heads": HEADS}


def check_by_reference(operator, feeds, constants=None, *, symbolic=None, **settings):
    """Against ONNX's reference implementation: ONNX Runtime doesn't have all of it."""
    model = node_model(operator, feeds, constants, symbolic=symbolic, **settings)
    expected = ReferenceEvaluator(model).run(None, dict(feeds))
    network = imported(model)
    for one, two in zip(expected, run_keras(network, feeds), strict=True):
        assert (one.shape, one.dtype) == (two.shape, two.dtype)
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)
    return network


def attention(feeds, constants=None, **settings):
    names = ["q", "k", "v", "mask", "past_key", "past_value", "lengths"]
    inputs = [name if name in feeds or name in (constants or {}) else "" for name in names]
    while not inputs[-1]:
        inputs.pop()
    return check_by_reference(
        "Attention", feeds, constants, inputs=inputs, opset=settings.pop("opset", 24), **settings
    )


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("settings", [{}, {"scale": 0.3}, {"softcap": 2.0}, {"softmax_precision": 11}], ids=str)
def test_attention(settings, causal):
    attention(FOUR, is_causal=causal, **settings)
    attention(THREE, is_causal=causal, **FLAT, **settings)


@pytest.mark.parametrize("causal", [0, 1])
def test_open_sizes(causal):
    symbolic = {
        "q": ["batch", "queries", HEADS * WIDTH],
        "k": ["batch", "keys", HEADS * WIDTH],
        "v": ["batch", "keys", HEADS * 3],
    }
    network = attention(THREE, symbolic=symbolic, is_causal=causal, **FLAT)
    assert network.inputs[0].shape == (None, None, HEADS * WIDTH)


@pytest.mark.parametrize("opset", [23, 24, 25])
def test_shared_keys(opset):
    feeds = {**FOUR, "k": FOUR["k"][:, :2], "v": FOUR["v"][:, :2]}
    attention(feeds, opset=opset)


@pytest.mark.parametrize("shape", [(QUERIES, KEYS), (1, 1, 1, KEYS), (BATCH, HEADS, QUERIES, KEYS)])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("constant", [False, True])
def test_masks(shape, dtype, constant):
    mask = {"mask": random(*shape, dtype=dtype, seed=7)}
    feeds, constants = (FOUR, mask) if constant else ({**FOUR, **mask}, {})
    attention(feeds, constants)


def test_queries_without_any_key():
    mask = np.ones((QUERIES, KEYS), bool)
    mask[2] = False
    attention({**FOUR, "mask": mask})
    attention(FOUR, {"mask": mask}, is_causal=1)


def test_mask_shorter_than_the_keys():
    attention({**FOUR, "mask": random(QUERIES, KEYS - 2, dtype="bool")})


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("causal", [0, 1])
def test_past_and_all_outputs(mode, causal):
    past = {
        "past_key": random(BATCH, HEADS, 3, WIDTH, seed=4),
        "past_value": random(BATCH, HEADS, 3, 3, seed=5),
    }
    # In mode 0 the reference gives what's capped, the standard's text and function what isn't.
    cap = {"softcap": 3.0} if mode else {}
    attention({**FOUR, **past}, outputs=4, qk_matmul_output_mode=mode, is_causal=causal, **cap)


@pytest.mark.parametrize("causal", [0, 1])
def test_padded_keys(causal):
    attention({**FOUR, "lengths": np.array([3, KEYS], np.int64)}, is_causal=causal)


@pytest.mark.parametrize(("left", "right"), [(2, -1), (-1, 1), (1, 1), (2, 0)])
def test_windows(left, right):
    attention(FOUR, opset=25, left_window_size=left, right_window_size=right)


@together("interleaved", [0, 1])
def test_rotary_embedding(interleaved):
    feeds = {"x": random(2, 3, 4, 8), "cos": random(10, 4, seed=1), "sin": random(10, 4, seed=2)}
    constants = {"places": np.random.default_rng(0).integers(0, 10, (2, 4))}
    check("RotaryEmbedding", feeds, constants, opset=23, interleaved=interleaved)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("shared", [1, 2, 4])
def test_linear_attention(rule, shared):
    feeds = {
        "q": random(2, 5, 4 * 3), "k": random(2, 5, shared * 3, seed=1), "v": random(2, 5, shared * 6, seed=2),
        "state": random(2, shared, 3, 6, seed=3),
    }  # fmt: skip
    inputs = list(feeds)
    if "gated" in rule:
        feeds["decay"] = random(2, 5, shared * 3, low=-1, high=0)
    if "delta" in rule:
        feeds["beta"] = random(2, 5, shared, low=0, high=1)
    inputs += ["decay" if "gated" in rule else "", "beta" if "delta" in rule else ""]
    check_by_reference(
        "LinearAttention", feeds, inputs=inputs, outputs=2, opset=27, update_rule=rule, q_num_heads=4,
        kv_num_heads=shared,
    )  # fmt: skip


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("past", [False, True])
def test_causal_convolution(activation, past):
    feeds = {"x": random(2, 4, 9), **({"past": random(2, 4, 2, seed=4)} if past else {})}
    constants = {"w": random(4, 1, 3, seed=1), "b": random(4, seed=2)}
    inputs = ["x", "w", "b", *(["past"] if past else [])]
    check_by_reference(
        "CausalConvWithState", feeds, constants, inputs=inputs, outputs=2, opset=27, activation=activation
    )


# --- what ONNX Runtime adds -----------------------------------------------------------------------------------


def contributed(operator, feeds, constants=None, **settings):
    model = node_model(operator, feeds, constants, domain="com.microsoft", **settings)
    for value in model.graph.output:
        value.type.CopyFrom(onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None))
    return check_model(model, feeds)


@pytest.mark.parametrize("operator", ["Gelu", "QuickGelu", "FastGelu"])
def test_gelu(operator):
    contributed(operator, {"x": random(3, 8)})


@pytest.mark.parametrize("operator", ["BiasGelu", "FastGelu"])
def test_gelu_with_bias(operator):
    contributed(operator, {"x": random(3, 8)}, {"bias": random(8, seed=2)})


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(first, second):
    feeds = {
        "a": random(2, *((4, 3) if first else (3, 4))), "b": random(2, *((5, 4) if second else (4, 5)), seed=2)
    }  # fmt: skip
    contributed("FusedMatMul", feeds, transA=first, transB=second, alpha=0.5)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_layer_normalization(bias):
    feeds = {"x": random(2, 3, 8), "skip": random(2, 3, 8, seed=2)}
    rows = {"gamma": random(8, seed=3), "beta": random(8, seed=4), **({"bias": random(8, seed=5)} if bias else {})}
    contributed("SkipLayerNormalization", feeds, rows, epsilon=1e-3)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(bias):
    feeds = {"x": random(2, 3, 8), "skip": random(2, 3, 8, seed=2)}
    rows = {"gamma": random(8, seed=3), **({"bias": random(8, seed=5)} if bias else {})}
    contributed("SkipSimplifiedLayerNormalization", feeds, rows, epsilon=1e-3)


@together("constant", [True, False])
@together("axis", [-1, 1])
def test_simplified_layer_normalization(axis, constant):
    feeds, scale = {"x": random(2, 3, 8)}, {"scale": random(*((8,) if axis < 0 else (3, 8)), seed=3)}
    settings = {"axis": axis, "epsilon": 1e-3}
    check("SimplifiedLayerNormalization", feeds if constant else feeds | scale, scale if constant else {}, **settings)


@pytest.mark.parametrize("bias", [False, True])
def test_contributed_attention(bias):
    constants = {"bias": random(2 * HEADS * WIDTH + HEADS * 3, seed=6)} if bias else {}
    contributed("MultiHeadAttention", THREE, constants, num_heads=HEADS)


def test_contributed_attention_with_a_mask_is_refused():
    feeds = {**THREE, "mask": np.array([3, 5], np.int32)}
    model = node_model(
        "MultiHeadAttention", feeds, inputs=["q", "k", "v", "", "mask"], domain="com.microsoft", num_heads=HEADS
    )
    with pytest.raises(ConversionError, match="masks"):
        import_model(onnx_ir.from_proto(model))
