"""A wrong gradient goes through a whole campaign, from a worker's process to a program that shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from fuzz_cases import HEAD

from conrepair.application.cli.main import main
from conrepair_lab.cases.case import read
from conrepair_lab.fuzz.suspicion import GRADIENT
from conrepair_lab.report.fuzz.folder import read_finding

pytestmark = [pytest.mark.workers, pytest.mark.slow]

# Each process whose PYTHONPATH names its folder has a decomposition that's off by a hundredth.
PLANT = """
import importlib.abc
import importlib.machinery
import sys

NAME = "torch._inductor.decomposition"


class Planting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != NAME:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            import torch

            operator = torch.ops.aten.tanh_backward.default
            module.decompositions[operator] = lambda given, result: 1.01 * given * (1 - result * result)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Planting())
"""
TEXT = """g (float[3] x, float[3] z) => (float[3] y, float[3] v) <float[3] w = {0.5, -1.25, 2}>
{ a = Mul (x, w) b = Tanh (a) y = Sigmoid (b) v = Cos (z) }"""


def test_it_becomes_a_folder_whose_program_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted, plain = tmp_path / "planted", os.environ.get("PYTHONPATH", "")
    planted.mkdir()
    (planted / "sitecustomize.py").write_text(PLANT)
    onnx.save(onnx.parser.parse_model(HEAD + TEXT), tmp_path / "net.onnx")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(planted), plain))))
    asked = [str(tmp_path / "net.onnx"), "--systems", "torch-compile", "-o", str(tmp_path / "out"), "-q"]
    assert main(["fuzz", *asked]) == 1
    (folder,) = (tmp_path / "out" / "findings").iterdir()
    finding = read_finding(folder)
    assert (finding.suspicion.kind, finding.suspicion.stage, finding.operators) == (GRADIENT, GRADIENT, ("Tanh",))
    assert finding.cause.causes == (("decomposition:aten.tanh_backward.default",),)
    assert finding.suspicion.output in read(folder).inputs
    for path, code in ((os.environ["PYTHONPATH"], 1), (plain, 0)):
        variables = os.environ | {"PYTHONPATH": path, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / f"cache-{code}")}
        program = [sys.executable, folder / "reproduce.py"]
        shown = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path, env=variables)
        assert shown.returncode == code, shown.stdout + shown.stderr
