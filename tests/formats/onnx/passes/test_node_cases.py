"""ONNX's own test cases of its operators, through the passes: what isn't refused gives the same results."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest

from conrepair.formats.onnx.passes.lower_opset import lower_opset
from conrepair.formats.onnx.passes.normalise import passes_for
from conrepair.formats.onnx.passes.raise_opset import raise_opset
from conrepair.formats.onnx.passes.verify import outputs_differ
from conrepair.formats.onnx.passes.wants import Wants
from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.onnx_session import open_session

Case = tuple[str, onnx.ModelProto, dict[str, Any], list[Any], list[Any]]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Name, model, feeds, what ONNX Runtime gives, what ONNX expects; of cases that ONNX Runtime can run."""
    return list(_cases())


def _cases() -> Iterator[Case]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    for case in found:
        inputs, expected = case.data_sets[0]
        feeds = {
            value.name: np.asarray(item) if isinstance(item, np.generic) else item
            for value, item in zip(case.model.graph.input, inputs, strict=False)
        }
        try:
            results = open_session(case.model.SerializeToString()).run(None, feeds)
        # onnxruntime raises one class per status code, without a common base of their own.
        except Exception:  # noqa: BLE001, S112
            continue
        yield case.name, case.model, feeds, results, list(expected)


def lower(model: onnx_ir.Model) -> None:
    lower_opset(model, 13)


def raised(model: onnx_ir.Model) -> None:
    raise_opset(model, 23)


def normalised(model: onnx_ir.Model) -> None:
    for _, step in passes_for(Wants(highest=13, identities=False, explicit_pads=True, own_outputs=True)):
        step(model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "at_least"), [(lower, 700), (raised, 1000), (normalised, 1100)], ids=["lower", "raise", "normalise"]
)
def test_no_case_becomes_wrong(cases: list[Case], change: Callable[[onnx_ir.Model], None], at_least: int) -> None:
    counts: collections.Counter[str] = collections.Counter()
    wrong = []
    for name, proto, feeds, results, expected in cases:
        version = {item.domain: item.version for item in proto.opset_import}.get("", 0)
        if (change is lower and version <= 13) or (change is raised and version >= 23):
            continue
        model = onnx_ir.from_proto(proto)
        try:
            change(model)
        except ConversionError:
            counts["refused"] += 1
            continue
        outputs = open_session(onnx_ir.to_proto(model).SerializeToString()).run(None, feeds)
        # ONNX Runtime's own kernel is wrong in one of the cases of Attention, whose definition isn't.
        if _same(results, outputs) or _same(expected, outputs):
            counts["right"] += 1
        else:
            wrong.append(name)
    print(dict(counts))
    assert not wrong
    assert counts["right"] >= at_least


def _same(reference: list[Any], outputs: list[Any]) -> bool:
    pairs = {str(index): pair for index, pair in enumerate(zip(reference, outputs, strict=True))}
    return outputs_differ(pairs, 1e-3) is None or all(map(_close, reference, outputs))


def _close(one: Any, two: Any) -> bool:
    """Some cases have results near 0, of which relative L2 says nothing."""
    if not isinstance(one, np.ndarray) or one.dtype.kind not in "fc" or one.shape != np.shape(two):
        return str(one) == str(two)
    half = one.dtype == np.float16
    return bool(np.allclose(one, two, rtol=2e-2 if half else 1e-3, atol=1e-2 if half else 1e-5, equal_nan=True))
