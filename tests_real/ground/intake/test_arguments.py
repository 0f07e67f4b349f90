"""Whatever a function of ours is called with: it's answered by our own error, which names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conrepair
from conrepair.application.verbs.options import Convert
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair_lab.options.generate import OneByOne

GONE = "gone.onnx"
VERBS: dict[str, Callable[..., Any]] = {
    "compare": lambda **options: conrepair.compare(GONE, GONE, **options),
    "localize": lambda **options: conrepair.localize(GONE, GONE, **options),
    "repair": lambda **options: conrepair.repair(GONE, GONE, **options),
    "convert": lambda **options: conrepair.convert(GONE, **({"to": "onnx"} | options)),
    "build": lambda **options: conrepair.build(GONE, **options),
    "execute": lambda **options: conrepair.execute(GONE, **options),
    "inspect": lambda **options: conrepair.inspect(GONE, **options),
    "generated": lambda **options: list(conrepair.generated(0, **options)),
    "audit": lambda **options: conrepair.audit("gone.json", **options),
}


class Hostile:
    """Answers nothing that it's asked."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __array__(self, *_: Any) -> Any:
        raise RuntimeError("no array")


ODD = [object(), Hostile(), b"\0", [None], {1: None}, float("nan"), -1.5, 10**5000, "a\0b", 1j, np.array([1, 2])]


def own(verb: str) -> list[inspect.Parameter]:
    return [
        item
        for item in inspect.signature(getattr(conrepair, verb)).parameters.values()
        if item.kind is inspect.Parameter.KEYWORD_ONLY
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_arguments_that_cant_be_meant(verb: str) -> None:
    for parameter in own(verb):
        for value in ODD:
            try:
                VERBS[verb](**{parameter.name: value})
            except ConrepairError as error:
                named = parameter.name in str(error)
            else:
                named = False
            assert named or type(value) is not object, f"{verb}({parameter.name}={type(value)}) isn't refused"


@pytest.mark.parametrize(
    ("place", "call"),
    [
        ("source", lambda: conrepair.compare(None, GONE)),
        ("target", lambda: conrepair.compare("pyproject.onnx", 3)),
        ("between[1]", lambda: conrepair.localize("a.onnx", "b.onnx", between=["c.onnx", Hostile()])),
        ("model", lambda: conrepair.execute(np.zeros(3))),
        ("setting", lambda: conrepair.build(GONE, setting=object())),
        ("config", lambda: conrepair.audit(3)),  # type: ignore[arg-type]
    ],
)
def test_models_that_are_none(place: str, call: Callable[[], Any]) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert place in str(raised.value)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    asked = Convert(
        GONE, to="onnx", samples=np.int64(3), seed=np.uint8(7), low=np.float32(0.5), high=2, trust=np.True_,
        via=iter(["a", "b"]), output=tmp_path,
    )  # fmt: skip
    numbers = [asked.samples, asked.seed, asked.low, asked.high, asked.trust]
    assert numbers == [3, 7, 0.5, 2.0, True]
    assert all(type(item) in {int, float, bool} for item in numbers)
    assert (asked.via, asked.output) == (("a", "b"), tmp_path)
    networks = OneByOne(np.int8(2), ranks=[np.int32(1), 4], forms={"a": np.float64(0.5)})
    assert (networks.count, networks.ranks, networks.forms) == (2, (1, 4), {"a": 0.5})


@pytest.mark.parametrize(
    "given",
    [
        "x=", "batch,3:bogus", "batch,-3", "batch,0",
        TensorSpec("x", ("batch", 3), "bogus"), TensorSpec("x", 3, "float32"),  # type: ignore[arg-type]
        TensorSpec("x", (1.5,), "float32"), TensorSpec(None, (1,), "float32"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_inputs_that_no_model_has(given: Any) -> None:
    with pytest.raises(UsageError, match="inputs="):
        conrepair.inspect(GONE, inputs=[given])


@pytest.mark.parametrize("value", [object(), Hostile(), 10**5000, b"x", 1j], ids=lambda value: type(value).__name__)
def test_options_that_are_no_plain_values(value: Any) -> None:
    with pytest.raises(UsageError, match=r"options\['keras-tflite'\]\['quantize'\] is of type"):
        conrepair.convert(GONE, to="tflite", options={"keras-tflite": {"quantize": value}})
    with pytest.raises(UsageError, match=r"tvm\['threads'\] is of type"):
        conrepair.execute(GONE, backend="tvm", tvm={"threads": value})
    with pytest.raises(UsageError, match=r"^threads is of type"):
        conrepair.build(GONE, threads=value)
