"""Every fault can be put somewhere, is valid there, and changes what the model computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from small_models import model_of

from benchmarks import faults as package
from benchmarks.faults.catalogue import faults
from benchmarks.faults.fault import Fault
from benchmarks.faults.inject_file import FileInjection, inject_file
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of

OPSET = 21
SIZES: dict[str, tuple[int, ...]] = {
    "w": (8, 3, 3, 3), "b": (8,), "g": (8,), "h": (8,), "m": (8,), "v": (8,), "d": (8, 8, 3, 3), "k": (8, 8, 3, 3),
    "e": (8,), "u": (16, 16), "q": (16,), "t": (9, 8), "s": (8, 8), "lw": (1, 24, 6), "lr": (1, 24, 6), "lb": (1, 48),
    "gw": (1, 18, 6), "gr": (1, 18, 6), "gb": (1, 36), "six": (), "zero": (), "pads": (8,), "scales": (4,),
    "rows": (8, 8), "root": (), "mask": (8, 8),
}  # fmt: skip
NUMBERS: dict[str, Any] = {
    "six": np.float32(0.8), "zero": np.float32(0), "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
    "scales": np.array([1, 1, 1.5, 1.5], np.float32), "root": np.float32(2.5),
    "mask": np.triu(np.full((8, 8), -1e4, np.float32), 1),
}  # fmt: skip

IMAGE = "float[n, 3, 12, 12] x"
MODELS = {
    "image": (
        f"({IMAGE}) => (float[n, 16] y)",
        """
        c = Conv <pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w, b)
        n1 = BatchNormalization <epsilon = 0.001> (c, g, h, m, v)
        r = Clip (n1, zero, six)
        p = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (r)
        a = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (p)
        j = Concat <axis = 1> (p, a)
        f = Conv <pads = [2, 2, 2, 2], dilations = [2, 2]> (p, d, e)
        l = Relu (f)
        o = Add (l, p)
        pool = GlobalAveragePool (o)
        mean = ReduceMean <keepdims = 0> (j, axes)
        flat = Flatten (pool)
        two = Concat <axis = 1> (flat, flat)
        z = Gemm <transB = 0> (two, u, q)
        act = Elu (z)
        sum = Add (act, mean)
        y = Identity (sum)
        """,
    ),
    "order": (
        f"({IMAGE}) => (float[n, 432] y)",
        """
        p = Pad <mode = "reflect"> (x, pads)
        c = MaxPool <kernel_shape = [3, 3]> (p)
        f = Flatten (c)
        y = Softmax (f)
        """,
    ),
    "others": (
        f"({IMAGE}) => (float[n, 3, 18, 18] y)",
        """
        l = LeakyRelu <alpha = 0.01> (x)
        t = Transpose <perm = [0, 1, 3, 2]> (l)
        s = Sub (t, x)
        h = HardSwish (s)
        y = Resize <mode = "linear"> (h, , scales)
        """,
    ),
    "text": (
        "(int64[n, 5] i) => (float[n, 5, 8] y)",
        """
        x = Gather (t, i)
        l = LayerNormalization (x, g, h)
        a = MatMul (l, s)
        p = Softmax (a)
        b = Add (p, a)
        y = Gelu (b)
        """,
    ),
    "twice": (
        f"({IMAGE}) => (float[n, 8, 12, 12] y)",
        """
        c = Conv <pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w, b)
        n1 = BatchNormalization <epsilon = 0.001> (c, g, h, m, v)
        r = Clip (n1, zero, six)
        f = Conv <pads = [2, 2, 2, 2], dilations = [2, 2]> (r, d, e)
        n2 = BatchNormalization <epsilon = 0.001> (f, g, h, m, v)
        y = Clip (n2, zero, six)
        """,
    ),
    "attention": (
        "(float[n, 8, 8] x) => (float[n, 8, 8] y)",
        """
        one = MatMul (x, s)
        turned = Transpose <perm = [0, 2, 1]> (x)
        products = MatMul (one, turned)
        scaled = Div (products, root)
        masked = Add (scaled, mask)
        shares = Softmax (masked)
        z = MatMul (shares, x)
        two = MatMul (z, rows)
        back = Transpose <perm = [0, 2, 1]> (z)
        others = MatMul (two, back)
        less = Div (others, root)
        hidden = Add (less, mask)
        parts = Softmax (hidden)
        y = MatMul (parts, z)
        """,
    ),
    "lstm": (
        "(float[4, 2, 6] x) => (float[4, 1, 2, 6] y)", "y, last, cell = LSTM <hidden_size = 6> (x, lw, lr, lb)",
    ),
    "gru": ("(float[4, 2, 6] x) => (float[4, 1, 2, 6] y)", "y, last = GRU <hidden_size = 6> (x, gw, gr, gb)"),
    "pair": (
        "(float[n, 8] one, float[n, 8] two) => (float[n, 8] y, float[n, 8] z)",
        "a = MatMul (one, rows) b = Tanh (two) y = Sub (a, b) z = Mul (a, b)",
    ),
}  # fmt: skip


def build(name: str, folder: Path) -> Model:
    signature, text = MODELS[name]
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {OPSET}]> {name} {signature} {{ {text} }}')
    generator = np.random.default_rng(0)
    used = {item for node in proto.graph.node for item in node.input}
    for key, shape in SIZES.items():
        if key in used and all(key not in node.output for node in proto.graph.node):
            array = NUMBERS.get(
                key, np.abs(generator.normal(0, 0.5, shape)).astype(np.float32) - 0.3 * (key not in "vm")
            )
            proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), key))
    if "axes" in used:
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 3]), "axes"))
    for node in proto.graph.node:
        node.name = node.output[0]
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, folder / f"{name}.onnx")
    return model_of("onnx", folder / f"{name}.onnx")


def feeds(model: Model) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    result = {}
    for spec in framework("onnx").describe(model).inputs:
        shape = [size if isinstance(size, int) else 3 for size in spec.shape]
        drawn = generator.normal(size=shape).astype(np.float32)
        result[spec.name] = generator.integers(0, 9, shape) if spec.dtype == "int64" else drawn
    return result


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    folder = tmp_path_factory.mktemp("models")
    return {name: build(name, folder) for name in MODELS}


def injected(fault: Fault, models: Mapping[str, Model], folder: Path) -> dict[str, FileInjection]:
    found = {}
    for name, model in models.items():
        injection = inject_file(model, fault, feeds(model), np.random.default_rng(0), folder)
        assert sha256_of(Path(model.path)) == model.sha256, "the model is as it was"
        if injection is not None:
            found[name] = injection
    return found


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault(fault: Fault, models: dict[str, Model], tmp_path: Path) -> None:
    found = injected(fault, models, tmp_path / "one")
    assert found, "there's a model that it can be put into"
    again = injected(fault, {name: models[name] for name in list(found)[:1]}, tmp_path / "two")
    for injection in found.values():
        assert injection.effect > 1e-4
        proto = onnx.load(injection.path)
        onnx.checker.check_model(proto, full_check=True)
        assert injection.layers & {node.name for node in proto.graph.node}
    for name, injection in again.items():
        assert injection.words == found[name].words, "the seed decides"
        assert injection.model.sha256 == found[name].model.sha256


def test_the_catalogue() -> None:
    found = faults()
    assert len(found) >= 40
    assert {fault.kind for fault in found} == set(Kind) - {Kind.COMPILATION}
    assert max(Counter(fault.name for fault in found).values()) == 1
    root = Path(package.__file__).parent
    paths = [path for kind in Kind for path in (root / kind).glob("*.py") if path.stem != "__init__"]
    files = {path.relative_to(root).as_posix() for path in paths}
    assert files == {f"{fault.kind}/{fault.name.replace('-', '_')}.py" for fault in found}
    assert all(fault.provenance and fault.repair for fault in found)
