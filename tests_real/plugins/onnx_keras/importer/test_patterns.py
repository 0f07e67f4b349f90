import itertools

import keras
import numpy as np
import onnx
import onnx_ir
import pytest
from crossed import crossed
from onnx_cases import check_model, layers_of, random
from torch_cases import EXPORTERS, exported

from conrepair_onnx_keras.importer.patterns import join_patterns

torch = pytest.importorskip("torch")
BATCH, STEPS, WIDTH = 2, 5, 8


def model_of(text, initializers=None):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 16]>\n{text}')
    for name, array in (initializers or {}).items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array, np.float32), name))
    return model


def joined(model):
    """Operators after patterns were joined."""
    ir = onnx_ir.from_proto(onnx.shape_inference.infer_shapes(model))
    join_patterns(ir)
    return [node.op_type for node in ir.graph if node.op_type != "Constant"]


# --- GELU -----------------------------------------------------------------------------------------------------

ROOT, HALF_ROOT = {"root": 2**0.5, "one": 1.0, "half": 0.5}, 2**-0.5
GELUS = {
    "half last": "d = Div(x, root) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)",
    "half first": "h = Mul(half, x) d = Div(x, root) e = Erf(d) a = Add(one, e) y = Mul(h, a)",
    "half inside": "d = Div(x, root) e = Erf(d) a = Add(e, one) h = Mul(a, half) y = Mul(x, h)",
    "x added": "d = Div(x, root) e = Erf(d) q = Mul(x, e) p = Add(q, x) y = Mul(p, half)",
    "behind a cast": "d = Div(x, root) c = Cast<to = 1>(d) e = Erf(c) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)",
}


def gelu_graph(lines, outputs="float[N, 6] y"):
    return f"g (float[N, 6] x) => ({outputs}) {{\n" + lines.replace(") ", ")\n") + "\n}"


@pytest.mark.parametrize("lines", GELUS.values(), ids=GELUS)
def test_exact_gelu(lines):
    model = model_of(gelu_graph(lines), ROOT)
    assert joined(model) == ["Gelu"]
    check_model(model, {"x": random(4, 6, low=-4, high=4)})


def test_gelu_by_the_hyperbolic_tangent():
    constants = {"three": 3.0, "c": 0.044715, "root": (2 / np.pi) ** 0.5, "one": 1.0, "half": 0.5}
    text = """g (float[N, 6] x) => (float[N, 6] y) {
        p = Pow(x, three)
        q = Mul(p, c)
        s = Add(x, q)
        t = Mul(s, root)
        u = Tanh(t)
        v = Add(u, one)
        w = Mul(x, v)
        y = Mul(w, half)
    }"""
    model = model_of(text, constants)
    assert joined(model) == ["Gelu"]
    check_model(model, {"x": random(4, 6, low=-4, high=4)})


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "lines",
    [
        "a = Mul(x, x) "
        + " ".join(f"{b} = Mul({a}, {a})" for a, b in itertools.pairwise("abcdefg"))
        + " y = Relu(g)",
        "a = Mul(x, large) b = Pow(a, nine) y = Mul(b, x)",
        " ".join(f"c{place} = Mul({f'c{place - 1}' if place else 'x'}, row)" for place in range(100))
        + " y = Relu(c99)",
    ],
    ids=["squares of squares", "a power of a large number", "a long product"],
)
def test_products_that_are_no_equation_are_read_in_no_time(lines):
    constants = {"large": 1e38, "nine": 9.0, "row": random(6, seed=3)}
    assert "Gelu" not in joined(model_of(gelu_graph(lines), constants))


@pytest.mark.parametrize("changed", [{"root": 1.5}, {"half": 0.4}, {"one": 1.01}])
def test_what_only_resembles_gelu_stays(changed):
    model = model_of(gelu_graph(GELUS["half last"]), {**ROOT, **changed})
    assert "Gelu" not in joined(model)
    check_model(model, {"x": random(4, 6, low=-4, high=4)})


@pytest.mark.parametrize("one", [np.ones((4, 1, 1)), np.ones((4, 6))], ids=["of three axes", "of many ones"])
def test_gelu_that_a_constant_widens_stays(one):
    text = gelu_graph(GELUS["half last"]).replace("float[N, 6] x", "float[1, 6] x")
    model = model_of(text.replace("float[N, 6] y", "float[4, 1, 6] y" if one.ndim > 2 else "float[4, 6] y"), ROOT)
    model.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(one.astype(np.float32), "one"))
    assert "Gelu" not in joined(model)
    check_model(model, {"x": random(1, 6, low=-4, high=4)})


def test_gelu_by_the_hyperbolic_tangent_of_products():
    """Without a power, its factors in another order, halved inside."""
    constants = {"c": 0.044715, "root": (2 / np.pi) ** 0.5, "one": 1.0, "half": 0.5}
    text = """g (float[N, 6] x) => (float[N, 6] y) {
        p = Mul(x, x)
        q = Mul(c, p)
        s = Add(one, q)
        r = Mul(root, s)
        t = Mul(r, x)
        u = Tanh(t)
        h = Mul(half, u)
        v = Add(half, h)
        y = Mul(v, x)
    }"""
    assert joined(model_of(text, constants)) == ["Gelu"]


def test_gelu_whose_parts_are_used_elsewhere():
    model = model_of(gelu_graph(GELUS["half last"], "float[N, 6] y, float[N, 6] e"), ROOT)
    check_model(model, {"x": random(4, 6, low=-4, high=4)})


# --- LayerNormalization ---------------------------------------------------------------------------------------

NORMALIZATION = """g (float[N, 3, 6] x) => (float[N, 3, 6] y) {
    m = ReduceMean<axes = [-1]>(x)
    d = Sub(x, m)
    p = Pow(d, two)
    v = ReduceMean<axes = [-1]>(p)
    a = Add(v, epsilon)
    s = Sqrt(a)
    n = Div(d, s)
    f = Mul(n, scale)
    y = Add(f, bias)
}"""
PARAMETERS = {"two": 2.0, "epsilon": 1e-5, "scale": random(6, seed=1), "bias": random(6, seed=2)}


def test_layer_normalization():
    model = model_of(NORMALIZATION, PARAMETERS)
    assert joined(model) == ["LayerNormalization"]
    assert layers_of(check_model(model, {"x": random(4, 3, 6)})) == ["LayerNormalization"]
    check_model(model, {"x": random(4, 3, 6, low=-1e-3, high=1e-3)})


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("p = Pow(d, two)", "e = Cast<to = 1>(d)\n    p = Pow(e, two)"),
        ("a = Add(v, epsilon)", "w = Identity(v)\n    a = Add(w, epsilon)"),
    ],
    ids=["a cast", "an identity"],
)
def test_layer_normalization_around_a_copy(before, now):
    assert joined(model_of(NORMALIZATION.replace(before, now), PARAMETERS))[-1] == "LayerNormalization"


def test_layer_normalization_without_bias():
    text = NORMALIZATION.replace("f = Mul", "y = Mul").replace("y = Add(f, bias)", "")
    model = model_of(text, {name: array for name, array in PARAMETERS.items() if name != "bias"})
    assert joined(model) == ["LayerNormalization"]
    check_model(model, {"x": random(4, 3, 6)})


@pytest.mark.parametrize(
    "change", [("axes = [-1]", "axes = [1]"), ("Pow(d, two)", "Abs(d)"), ("Sqrt(a)", "Identity(a)")], ids=str
)
def test_what_only_resembles_layer_normalization_stays(change):
    model = model_of(NORMALIZATION.replace(*change), PARAMETERS)
    assert "LayerNormalization" not in joined(model)
    check_model(model, {"x": random(4, 3, 6)})


# --- multi-head attention -------------------------------------------------------------------------------------


class Attention(torch.nn.Module):
    def __init__(self, heads=2, need_weights=False, **options):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(WIDTH, heads, **options)
        self.need_weights = need_weights
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter, std=0.4)

    def forward(self, query, key=None, value=None):
        key, value = query if key is None else key, query if value is None else value
        return self.attention(query, key, value, need_weights=self.need_weights)[0]


def check_network(network, feeds, names, path, *, dynamo, layers=1, **options):
    """Export with gradients, so that the exporter doesn't see torch's own fused kernels."""
    model = exported(network, feeds, names, path, dynamo=dynamo, **options)
    arrays = dict(zip("xyz", feeds, strict=False))
    result = check_model(model, arrays)
    assert layers_of(result).count("MultiHeadAttention") == layers
    assert "Softmax" not in layers_of(result) or not layers
    with torch.no_grad():
        expected = network(*map(torch.from_numpy, feeds)).numpy()
    np.testing.assert_allclose(np.asarray(result.predict_on_batch(list(feeds))), expected, rtol=1e-4, atol=1e-4)
    return result


@pytest.mark.parametrize(
    ("batch_first", "need_weights", "dynamo"),
    crossed(
        *[[True, False]] * 3,
        quick=[(True, True, True), (False, False, True), (True, False, False), (False, True, False)],
    ),
)
def test_self_attention(batch_first, need_weights, dynamo, tmp_path):
    torch.manual_seed(1)
    network = Attention(batch_first=batch_first, need_weights=need_weights).eval()
    x = random(BATCH, STEPS, WIDTH)
    names = {0: "batch", 1: "steps"} if batch_first else {0: "steps", 1: "batch"}
    if not dynamo:  # the older exporter writes the number of steps into the graph
        names = {axis: name for axis, name in names.items() if name == "batch"}
    result = check_network(network, [x], [names], tmp_path / "model.onnx", dynamo=dynamo)
    assert result.inputs[0].shape.count(None) == len(names)


@pytest.mark.parametrize(("bias", "dynamo"), crossed(*[[True, False]] * 2, quick=[(True, True), (False, False)]))
def test_attention_between_two_sequences(bias, dynamo, tmp_path):
    torch.manual_seed(2)
    network = Attention(batch_first=True, kdim=6, vdim=10, heads=4, bias=bias).eval()
    feeds = [random(BATCH, STEPS, WIDTH), random(BATCH, 7, 6), random(BATCH, 7, 10)]
    names = [{0: "batch", 1: "steps"}, {0: "batch", 1: "others"}, {0: "batch", 1: "others"}]
    check_network(network, feeds, names, tmp_path / "model.onnx", dynamo=dynamo)


@pytest.mark.parametrize("dynamo", EXPORTERS)
def test_fixed_sizes(dynamo, tmp_path):
    torch.manual_seed(3)
    network = Attention(batch_first=True).eval()
    check_network(network, [random(BATCH, STEPS, WIDTH)], [{}], tmp_path / "model.onnx", dynamo=dynamo)


class Masked(Attention):
    def forward(self, x):
        mask = torch.triu(torch.full((STEPS, STEPS), float("-inf")), 1)
        return self.attention(x, x, x, need_weights=False, attn_mask=mask)[0]


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.last = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        query, key, value = self.rows(x).reshape(-1, STEPS, 3, 2, WIDTH // 2).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.softmax(query @ key.transpose(-2, -1) * 0.7, dim=-1)
        return self.last((scores @ value).transpose(1, 2).reshape(-1, STEPS, WIDTH))


@pytest.mark.parametrize("dynamo", EXPORTERS)
@pytest.mark.parametrize("kind", [Masked, Scaled])
def test_what_only_resembles_attention_stays(kind, dynamo, tmp_path):
    torch.manual_seed(4)
    network = (kind(batch_first=True) if kind is Masked else kind()).eval()
    check_network(
        network, [random(BATCH, STEPS, WIDTH)], [{0: "batch"}], tmp_path / "model.onnx", dynamo=dynamo, layers=0
    )


class Encoder(torch.nn.Module):
    def __init__(self, norm_first=False):
        super().__init__()
        self.embedding = torch.nn.Embedding(20, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, 2, 16, activation="gelu", batch_first=True, norm_first=norm_first
        )
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, 3)
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter, std=0.5)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


@pytest.mark.parametrize(
    ("opset", "norm_first", "dynamo"),
    crossed([14, 20], [False, True], [True, False], quick=[(20, False, True), (14, True, False)]),
)
def test_transformer_encoder_of_tokens(opset, norm_first, dynamo, tmp_path):
    if dynamo and opset < 18:
        pytest.skip("the current exporter begins with opset 18")
    torch.manual_seed(5)
    network = Encoder(norm_first).eval()
    tokens = np.random.default_rng(0).integers(0, 20, (BATCH, STEPS))
    result = check_network(
        network,
        [tokens],
        [{0: "batch", 1: "steps"} if dynamo else {0: "batch"}],
        tmp_path / "model.onnx",
        dynamo=dynamo,
        layers=2,
        opset_version=opset,
    )
    kinds = layers_of(result)
    assert (kinds.count("LayerNormalization"), kinds.count("Gelu"), kinds.count("Embedding")) == (4, 2, 1)
    assert result.inputs[0].shape == (None, None if dynamo else STEPS)
    result.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    other = np.random.default_rng(1).integers(0, 20, (3, 9 if dynamo else STEPS))
    with torch.no_grad():
        expected = network(torch.from_numpy(other)).numpy()
    np.testing.assert_allclose(again.predict_on_batch(other), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("dynamo", EXPORTERS)
def test_vision_transformer(dynamo, tmp_path):
    from conrepair.ground.runtime.torchvision import import_torchvision

    models = import_torchvision().models
    torch.manual_seed(6)
    network = models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64, num_classes=10
    ).eval()
    torch.nn.init.normal_(network.heads.head.weight)
    check_network(
        network, [random(BATCH, 3, 32, 32)], [{0: "batch"}], tmp_path / "model.onnx", dynamo=dynamo, layers=2
    )
