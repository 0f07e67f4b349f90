"""Patterns: each can be woven, is valid and finite, and sets off what it's made for."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx
import onnxoptimizer
import pytest

from benchmarks.generate.firing import fired_alone
from benchmarks.generate.firing_relax import PASSES
from conrepair.formats.onnx.load.optimizers import OPTIMIZERS
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.onnx_form import model_of
from conrepair_lab.generate.patterns.language import written
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.settings.ports import NotAllowedError, Support
from conrepair_lab.generate.values.search import Settling, flaw_of
from conrepair_lab.generate.weaving import Weaver
from conrepair_lab.systems.firing import fired

_FIRED = {
    "conv and batch norm": "ConvBNFusion",
    "conv and mul": "ConvMulFusion",
    "relu and clip": "FuseReluClip",
    "product and bias": "MatMulAddFusion",
    "dense layers": "GemmActivationFusion",
    "layer norm written out": "LayerNormFusionL1",
    "layer norm of a sum": "SkipLayerNormFusion",
    "gelu behind a bias": "BiasGeluFusion",
    "gelu by tanh": "FastGeluFusion",
    "rms norm written out": "SimplifiedLayerNormFusion",
    "quantized conv": "QDQSelectorActionTransformer",
    "product quantized as it runs": "DynamicQuantizeMatMulFusion",
    "slices to depth": "SliceConcatToSpaceToDepthFusion",
    "gathers of every place": "GatherSliceToSplitFusion",
    "expression twice": "CommonSubexpressionElimination",
    "conv, add and relu": "ConvAddActivationFusion",
}


def woven(name: str, opset: int = 20, first: int = 0) -> Draft:
    for seed in range(first, first + 5):
        draft = Draft(opset)
        weaver = Weaver(draft, Random(f"{name}/{seed}"), Support(), 4096, name)
        try:
            with weaver.whole():
                patterns()[name].body(weaver)
        except NotAllowedError as error:
            said = error
            continue
        return draft
    raise AssertionError(f"{name}: {said}")


@pytest.mark.parametrize("name", patterns())
def test_a_pattern_is_valid_and_finite(name: str) -> None:
    draft = woven(name)
    assert {node.origin for node in draft.nodes} == {name}
    settled = Settling(draft, np.random.default_rng(0)).settled()
    assert settled is not None
    onnx.checker.check_model(model_of(draft, {}), full_check=True)
    for key, array in settled.computed.items():
        assert draft.tensors[key].type.describes(array.dtype.name, array.shape)
        assert not flaw_of(array)


@pytest.mark.parametrize("opset", [17, 22])
def test_patterns_are_for_other_opsets_too(opset: int) -> None:
    for name in patterns():
        assert woven(name, opset).nodes


@pytest.mark.parametrize("name", _FIRED)
def test_an_aim_is_hit(name: str) -> None:
    aim = _FIRED[name]
    assert f"onnxruntime:{aim}" in patterns()[name].aims
    models = [model_of(woven(name, first=first), {}) for first in (0, 5, 10)]  # some write it otherwise at times
    assert any(fired(model, [aim]) or fired_alone(model, [aim]) for model in models)


def test_aims_are_names_of_optimizations() -> None:
    known = {
        "onnxruntime": (*OPTIMIZERS, "CastChainElimination", "GeluApproximation"),  # two that an option turns on
        "relax": PASSES,
        "onnxoptimizer": onnxoptimizer.get_available_passes(),
    }
    for item in patterns().values():
        for aim in item.aims:
            system, _, name = aim.partition(":")
            assert name in known.get(system, (name,)), aim
            assert system in {*known, "inductor", "xla", "tflite"}


def test_what_the_opset_has_as_an_input_becomes_a_constant() -> None:
    for opset, inputs in ((17, 1), (18, 2)):
        draft = Draft(opset)
        weaver = Weaver(draft, Random(0), Support(), 4096, "test")
        weaver.node("ReduceMean", weaver.new("float32", (2, 3)), axes=(-1,))
        assert len(draft.nodes[0].inputs) == inputs
        assert ("axes" in draft.nodes[0].attributes) == (inputs == 1)
        assert draft.tensors[draft.nodes[0].outputs[0]].type.shape == (2, 1)


def test_an_equation_is_written_as_nodes() -> None:
    text = """
half(y, by):
    y / (by + 1)
softmax with a choice:
    x = new(2, 3, dtype="float64"); e = Exp(x - ReduceMax(x, axes=(0 - 1,)))
    a, b = Split(half(e, ReduceSum(e, axes=(-1,))), outputs=2, axis=1, split=(2 - 1, size(x, 1) - 1))
    all(one(-a, -a), hidden(Abs(b)))"""
    draft = Draft(20)
    ((name, behind, body),) = written(text)
    body(Weaver(draft, Random(0), Support(), 4096, name))
    assert (name, behind) == ("softmax with a choice", [])
    operators = " ".join(node.op for node in draft.nodes)
    assert operators == "ReduceMax Sub Exp ReduceSum Add Div Split Neg Abs"
    assert {tensor.type.dtype for tensor in draft.tensors.values()} == {"float64", "int64"}
    assert [draft.tensors[name].type.shape for name in draft.nodes[6].outputs] == [(2, 1), (2, 2)]
    assert draft.hidden == set(draft.nodes[8].outputs)


def test_what_is_no_word_is_refused() -> None:
    with pytest.raises(ValueError, match="neither an equation's name"):
        list(written("no colon\n    Relu(some())"))
    ((_, _, body),) = written("unknown:\n    sum_of(some())")
    with pytest.raises(KeyError, match="sum_of"):
        body(Weaver(Draft(20), Random(0), Support(), 4096, "unknown"))
