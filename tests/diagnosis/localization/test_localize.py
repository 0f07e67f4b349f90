"""From two networks to the layers at fault: known faults by name and kind, and none in conversions that are right."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
import rewritten_networks as networks
from localizing import localize_networks
from located_faults import assert_clean
from onnx import helper, numpy_helper
from rewritten_networks import damaged, feeds_of, opened, renamed
from small_models import model_of

from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict

FAULTS = [
    *(("residual blocks", name) for name in (
        "shortcut-missing", "activation-replaced", "pads-shifted", "epsilon-of-another-library", "channels-permuted",
        "kernel-flipped", "bias-dropped", "weights-in-few-bits", "layer-in-float16", "pixels-scaled-twice",
        "weights-in-bfloat16", "normalization-missing", "deviation-for-variance",
    )),
    *(("encoder blocks", name) for name in (
        "matrix-transposed", "axis-of-another-layout", "operands-exchanged", "weights-scaled", "operator-replaced",
        "result-in-few-bits",
    )),
    *(("convnet", name) for name in (
        "alpha-ignored", "flatten-in-another-order", "labels-shifted", "activation-missing", "softmax-missing",
    )),
]  # fmt: skip
_SEEDS = {"shortcut-missing": 4}  # 3 takes the other branch out with its layers, which is told as two faults


def localized(source: Path, target: Path, name: str, folder: Path, **options: float) -> Localization:
    feeds = feeds_of(name)
    batches = [(feeds, feeds), ({key: -array for key, array in feeds.items()},) * 2]
    work = folder / "work"
    work.mkdir()
    return localize_networks(opened(source, feeds), opened(target, feeds), batches, work, Options(**options)).result  # type: ignore[arg-type]


@cache
def source_of(name: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return networks.WRITERS[name](folder / f"{name}.onnx")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@pytest.mark.parametrize(("name", "fault_name"), FAULTS)
def test_the_layer_and_kind_of_known_faults(name: str, fault_name: str, sources: Path, tmp_path: Path) -> None:
    source = source_of(name, sources)
    [fault] = [item for item in faults() if item.name == fault_name]
    generator = np.random.default_rng(_SEEDS.get(fault_name, 3))
    injection = inject_file(model_of("onnx", source), fault, feeds_of(name), generator, tmp_path)
    assert injection is not None
    result = localized(source, injection.path, name, tmp_path)
    assert result.verdict is Verdict.FAULTY
    first = result.faults[0]
    assert {*first.source_layers[:1], *first.target_layers[:1]} & injection.layers, (injection.words, first)
    assert first.kind is fault.kind, first
    assert first.introduced_error > 10 * first.noise_floor
    assert first.evidence
    assert len(result.faults) == 1
    assert result.samples == 4


def test_a_product_that_is_transposed_by_its_attribute(tmp_path: Path) -> None:
    """The graph has the weights transposed; the file only says so."""
    text = "small (float[batch, 8] x) => (float[batch, 8] y) {{ [h] h = Gemm <transB = {}> (x, w)\n y = Tanh (h) }}"
    weights = {"w": networks.drawn(8, 8)}
    ours, theirs = (networks.written(tmp_path / f"{turned}.onnx", text.format(turned), weights) for turned in (0, 1))
    feeds = {"x": networks.drawn(4, 8, scale=1)}
    result = localize_networks(
        opened(ours, feeds), opened(theirs, feeds), [(feeds, feeds)], tmp_path, Options()
    ).result
    [fault] = result.faults
    assert (fault.kind, fault.target_layers[0]) == (Kind.HYPERPARAMETERS, "h")
    assert "transB True in the converted model, False in the original" in fault.evidence[0]


def test_axes_of_one_beside_a_fault_are_no_fault(tmp_path: Path) -> None:
    """Sizes are others behind lost pads, so that the mean of a picture ends the same piece."""
    body = """small (float[batch, 3, 8, 8] x) => (float[batch, 5] y) {{
        c = Conv <pads = [{}]> (x, k)\n r = Relu (c)\n {}\n y = MatMul (p, w) }}"""
    mean = "p = ReduceMean <axes = [2, 3], keepdims = 0> (r)"
    pool = "g = GlobalAveragePool (r)\n p = Squeeze (g, ends)"
    weights = {"k": networks.drawn(4, 3, 3, 3), "w": networks.drawn(4, 5)}
    ours = networks.written(tmp_path / "ours.onnx", body.format("1, 1, 1, 1", mean), weights)
    given = weights | {"ends": np.array([2, 3])}
    theirs = networks.written(tmp_path / "theirs.onnx", body.format("0, 0, 0, 0", pool), given)
    feeds = {"x": networks.drawn(4, 3, 8, 8, scale=1)}
    [fault] = localize_networks(
        opened(ours, feeds), opened(theirs, feeds), [(feeds, feeds)], tmp_path, Options()
    ).result.faults
    assert fault.evidence[0] == "`c` has pads [0, 0, 0, 0] in the converted model, [1, 1, 1, 1] in the original"


@pytest.mark.parametrize("operator", ["Mul", "Add", "PRelu"])
@pytest.mark.parametrize("shape", [(4,), (4, 1), (1, 4, 1, 1)])
def test_numbers_along_another_axis(operator: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    text = f"""small (float[batch, 3, 4, 4] x) => (float[batch, 4, 4, 5] y) {{
        c = Conv <pads = [1, 1, 1, 1]> (x, k)\n r = {operator} (c, s)\n y = MatMul (r, w) }}"""
    weights = {"k": networks.drawn(4, 3, 3, 3), "w": networks.drawn(4, 5), "s": networks.drawn(4, 1, 1, seed=1)}
    ours = networks.written(tmp_path / "ours.onnx", text, weights)
    theirs = networks.written(tmp_path / "theirs.onnx", text, weights | {"s": weights["s"].reshape(shape)})
    feeds = {"x": networks.drawn(4, 3, 4, 4, scale=1)}
    faults = localize_networks(
        opened(ours, feeds), opened(theirs, feeds), [(feeds, feeds)], tmp_path, Options()
    ).result.faults
    if len(shape) > 3:
        assert not faults
    else:
        axis = -len(shape)
        words = (
            f"of shape {list(shape)} in the converted model, [4, 1, 1] in the original: it "
            f"lies along axis {axis}, not -3"
        )
        assert words in faults[0].evidence[0]


@pytest.mark.parametrize("kept", [True, False])
def test_a_mean_without_its_axis_is_repeated_along_another(kept: bool, tmp_path: Path) -> None:
    text = """small (float[4, 4, 4] x) => (float[4, 4, 3] y) {{
        m = ReduceMean <axes = [2], keepdims = {}> (x)\n [z] z = Sub (x, m)\n y = MatMul (z, w) }}"""
    weights = {"w": networks.drawn(4, 3)}
    paths = [tmp_path / f"{place}.onnx" for place in range(2)]
    for path, keeps in zip(paths, (True, kept), strict=True):
        networks.written(path, text.format(int(keeps)), weights)
    feeds = {"x": networks.drawn(4, 4, 4, scale=1)}
    sides = opened(paths[0], feeds), opened(paths[1], feeds)
    faults = localize_networks(*sides, [(feeds, feeds)], tmp_path, Options()).result.faults
    words = "`z` reads `m` of shape [4, 4], [4, 4, 1] in the original: it's broadcast along other axes"
    assert [fault.evidence[0] for fault in faults] == ([] if kept else [words])


def test_axes_of_one_at_the_end_are_repeated_along_no_others(tmp_path: Path) -> None:
    body = """small (float[batch, 3, 8, 8] x) => (float[batch, 5] y) {{
        c = Conv <pads = [1, 1, 1, 1]> (x, k)\n {}\n y = MatMul (f, w) }}"""
    pool = "m = GlobalAveragePool (c)\n [s] s = Add (m, b)\n f = Flatten (s)"
    mean = "m = ReduceMean <axes = [2, 3], keepdims = 0> (c)\n [s] f = Add (m, b)"
    weights = {"k": networks.drawn(8, 3, 3, 3), "w": networks.drawn(8, 5), "b": networks.drawn(1, 8, 1, 1, seed=1)}
    ours = networks.written(tmp_path / "ours.onnx", body.format(pool), weights)
    wrong = weights | {"b": (weights["b"].reshape(8) * np.float32(1 + 8e-5))}
    theirs = networks.written(tmp_path / "theirs.onnx", body.format(mean), wrong)
    feeds = {"x": networks.drawn(4, 3, 8, 8, scale=1)}
    [fault] = localize_networks(
        opened(ours, feeds), opened(theirs, feeds), [(feeds, feeds)], tmp_path, Options()
    ).result.faults
    assert "the operand (b) of `s`" in fault.evidence[0]


def test_three_faults_at_once(sources: Path, tmp_path: Path) -> None:
    """One in the first block, one in the last, one at the end; with other names all over."""
    source = source_of("residual blocks", sources)
    damaged(source, tmp_path / "damaged.onnx", ["one0", "two3", "dense_b"])
    names = renamed(tmp_path / "damaged.onnx", tmp_path / "target.onnx")
    result = localized(source, tmp_path / "target.onnx", "residual blocks", tmp_path)
    assert {fault.source_tensor for fault in result.faults} == {"a0", "c3", "y"}
    assert {fault.target_tensor for fault in result.faults} == {names[name] for name in ("a0", "c3", "y")}
    assert {fault.kind for fault in result.faults} == {Kind.PARAMETERS}
    assert [fault.introduced_error for fault in result.faults] == sorted(
        (fault.introduced_error for fault in result.faults), reverse=True
    )
    behind = [row for row in result.layers if not row.guilty and row.source_tensor.startswith(("t1", "a2"))]
    assert behind
    assert all(row.inherited > 0.99 and row.full_run_error > 1e-3 for row in behind)


def simplified(source: Path, target: Path) -> None:
    onnxsim = pytest.importorskip("onnxsim")
    model, checked = onnxsim.simplify(onnx.load(source))
    assert checked
    onnx.save(model, target)


def later_opset(source: Path, target: Path) -> None:
    onnx.save(onnx.version_converter.convert_version(onnx.load(source), 21), target)


def folded(source: Path, target: Path) -> None:
    """Normalizations by hand, as exporters fold them."""
    proto = onnx.load(source)
    held = {item.name: item for item in proto.graph.initializer}
    for norm in [node for node in proto.graph.node if node.op_type == "BatchNormalization"]:
        [conv] = [node for node in proto.graph.node if node.output[0] == norm.input[0]]
        scale, shift, mean, variance = (numpy_helper.to_array(held[name]).astype(float) for name in norm.input[1:])
        factor = scale / np.sqrt(variance + 1e-5)
        weight, bias = held[conv.input[1]], held[conv.input[2]]
        new = (
            numpy_helper.to_array(weight) * factor[:, None, None, None],
            shift + factor * (numpy_helper.to_array(bias) - mean),
        )
        for tensor, array in zip((weight, bias), new, strict=True):
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float32), tensor.name))
        conv.output[0] = norm.output[0]
        proto.graph.node.remove(norm)
    onnx.save(proto, target)


def channels_last_between(source: Path, target: Path) -> None:
    """A pair of Transposes around every activation, as other layouts leave them."""
    proto = onnx.load(source)
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    for node in nodes:
        if node.op_type == "Relu":
            first, second = f"{node.input[0]} last", f"{node.output[0]} last"
            proto.graph.node.append(helper.make_node("Transpose", node.input[:], [first], perm=[0, 2, 3, 1]))
            back = helper.make_node("Transpose", [second], node.output[:], perm=[0, 3, 1, 2])
            node.input[:], node.output[:] = [first], [second]
            proto.graph.node.extend([node, back])
        else:
            proto.graph.node.append(node)
    onnx.save(proto, target)


REWRITES: dict[str, Callable[[Path, Path], object]] = {
    "simplified": simplified,
    "later opset": later_opset,
    "folded": folded,
    "transposed": channels_last_between,
    "renamed": lambda source, target: renamed(source, target, copies=True),
}


UNCHANGED = [("residual blocks", rewrite) for rewrite in REWRITES] + [
    (name, rewrite) for name in ("encoder blocks", "convnet") for rewrite in ("simplified", "later opset", "renamed")
]


@pytest.mark.parametrize(("name", "rewrite"), UNCHANGED)
def test_rewrites_that_change_nothing(name: str, rewrite: str, sources: Path, tmp_path: Path) -> None:
    source = source_of(name, sources)
    REWRITES[rewrite](source, tmp_path / "target.onnx")
    assert_clean(localized(source, tmp_path / "target.onnx", name, tmp_path), 6)


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_fault_behind_a_rewrite(rewrite: str, sources: Path, tmp_path: Path) -> None:
    """The bias of the second block's second convolution is lost on the way."""
    source = source_of("residual blocks", sources)
    damaged(source, tmp_path / "damaged.onnx", ["two_b1"], 0.0)
    REWRITES[rewrite](tmp_path / "damaged.onnx", tmp_path / "target.onnx")
    result = localized(source, tmp_path / "target.onnx", "residual blocks", tmp_path)
    [fault] = result.faults
    assert fault.source_tensor == "c1"
    assert fault.kind is Kind.PARAMETERS


def test_rounding_beyond_the_tolerance_is_noise(tmp_path: Path, sources: Path) -> None:
    """Every layer is within its floor; what's called equivalent is a matter of the margin."""
    source = source_of("residual blocks", sources)
    folded(source, tmp_path / "target.onnx")
    result = localized(
        source, tmp_path / "target.onnx", "residual blocks", tmp_path, tolerance=Tolerance(relative_l2=1e-12)
    )
    assert result.faults == ()
    assert result.verdict is Verdict.NOISE
