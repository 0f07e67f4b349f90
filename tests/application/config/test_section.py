"""From a section of a configuration to the options of its verb."""

from __future__ import annotations

from pathlib import Path

from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.options.generate import Generate
from conrepair_lab.options.trace import Trace
from conrepair_lab.sections import FuzzConfig, GenerateConfig, TraceConfig

BASE = Path("/audit")


def test_paths_start_at_the_configurations_folder() -> None:
    section = FuzzConfig(models=("net.onnx", "/other/net.onnx"), known="known.json", functions=("own.py:small",))
    found = section.asked(Fuzz, BASE, workers=3)
    assert [str(path) for path in found.models] == ["/audit/net.onnx", "/other/net.onnx"]
    assert (str(found.known), found.functions, found.workers) == ("/audit/known.json", ("/audit/own.py:small",), 3)
    assert found.data is None
    traced = TraceConfig(models=("a.onnx",), accuracy="accuracy.json").asked(Trace, BASE, model="a.onnx")
    assert str(traced.accuracy) == "/audit/accuracy.json"


def test_onnx_own_cases_are_no_path() -> None:
    found = FuzzConfig(learn=("onnx", "mine")).asked(Fuzz, BASE)
    assert [str(item) for item in found.learn] == ["onnx", "/audit/mine"]


def test_what_is_no_option_is_left_out_and_others_are_as_they_are() -> None:
    found = GenerateConfig(folder="networks", nodes=3, to=("torch",)).asked(Generate, BASE)
    assert (found.nodes, found.to, found.seed) == (3, ("torch",), 0)
