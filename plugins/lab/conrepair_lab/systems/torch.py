"""PyTorch: eager, and compiled by torch.compile, whose passes, decompositions, lowerings and options are switches."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from conrepair.formats.backends.base import CUDA
from conrepair.formats.backends.inductor import OPERATORS, PASSES, STAGES, TF32_OFF
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.ground.runtime.processes.reach import GPU
from conrepair_lab.systems.system import Program, Setting, System

_EAGER, _COMPILED = "libraries", "inductor"
_LOAD = """\
import numpy
import torch
{threads}{lines}
program = {program}.module()
kinds = [node.meta["val"].dtype for node in program.graph.nodes if node.op == "placeholder"]
run = {run}


def stored(tensor):
    if tensor.dtype == torch.bfloat16:  # NumPy has none
        return tensor.view(torch.int16).numpy(force=True).view("V2")
    return tensor.numpy(force=True)


"""
_RUN = """\
with numpy.load("inputs.npz") as inputs, torch.inference_mode():
    fed = [torch.from_numpy(inputs[name]).to(kind) for name, kind in zip(inputs.files, kinds, strict=True)]
    found = run(*(tensor{to} for tensor in fed))
found = found if isinstance(found, (tuple, list)) else [found]
numpy.savez("outputs.npz", **{{f"output_{{place}}": stored(tensor) for place, tensor in enumerate(found)}})
"""
_TRAINING = """\
with numpy.load("inputs.npz") as inputs:
    fed = zip(inputs.files, kinds, strict=True)
    leaves = {{name: torch.from_numpy(inputs[name]).to(kind) for name, kind in fed}}
real = {{name: leaf.requires_grad_() for name, leaf in leaves.items() if leaf.is_floating_point()}}
found = run(*(leaf{to} for leaf in leaves.values()))
found = [tensor for tensor in (found if isinstance(found, (tuple, list)) else [found]) if tensor.requires_grad]
drawn = [torch.from_numpy(numpy.random.default_rng(0).standard_normal(tensor.shape)) for tensor in found]
cotangents = [numbers.to(tensor) for numbers, tensor in zip(drawn, found)]
products = torch.autograd.grad(found, list(real.values()), cotangents, allow_unused=True, materialize_grads=True)
numpy.savez("outputs.npz", **{{name: stored(product) for name, product in zip(real, products)}})
"""


class Torch(System):
    """See `System`; the model is converted by onnx2torch. A compilation takes seconds."""

    name, format, file = "torch", "torch", "model.pt2"
    settings = MappingProxyType(
        {
            "eager": Setting(_EAGER),
            "aot": Setting(_COMPILED, {"backend": STAGES[1]}),
            "decomposed": Setting(_COMPILED, {"backend": STAGES[2]}),
            "compile": Setting(_COMPILED),
            "cuda": Setting(_COMPILED, {"backend": STAGES[0], "device": CUDA}),
            "cuda-ieee": Setting(_COMPILED, {"backend": STAGES[0], "device": CUDA, "tf32": False}),
            "cuda-compile": Setting(_COMPILED, {"device": CUDA}),
        }
    )
    plain, usual = "eager", "compile"
    seconds = 50
    trains = True

    def gradients(self, model: Model, setting: Setting, folder: Path, *, double: bool = False) -> Runnable:
        """By autograd; in float64 by a mode that widens what each operator reads."""
        options = {"second_opinion": True} if double else {**setting.options, "trains": True}
        return super().gradients(model, setting.with_options(options), folder)

    def symbolic(self, setting: Setting) -> Setting:
        """As it is; compiled for all sizes."""
        return setting if setting.backend == _EAGER else setting.with_options({**setting.options, "dynamic": True})

    def drawn(self, setting: Setting, generator: np.random.Generator) -> dict[str, Any]:
        """Some of Inductor's passes are left out."""
        if setting.backend != _COMPILED or "backend" in setting.options:
            return {}
        off = generator.choice(PASSES, generator.integers(1, 4), replace=False)
        return {"disabled_passes": sorted(map(str, off))}

    def program(self, setting: Setting) -> Program:
        """The exported program, as it is or compiled; inputs in their order."""
        return self._filled(_RUN, setting)

    def training_program(self, setting: Setting) -> Program:
        """By autograd, as `program`."""
        return self._filled(_TRAINING, setting)

    def _filled(self, text: str, setting: Setting) -> Program:
        options, run, lines = setting.options, "program", [""]
        if setting.backend == _COMPILED:
            stage = str(options.get("backend", STAGES[-1]))
            chosen = dict(options.get("inductor_options", {}))
            if passes := options.get("disabled_passes"):
                chosen["disabled_passes"] = ",".join(passes).upper()
            dynamic = bool(options.get("dynamic"))
            run = f"torch.compile(program, fullgraph=True, dynamic={dynamic}, backend={stage!r}"
            run += f", options={chosen!r})" if chosen else ")"
            lines += [
                line.format(name) for kind, line in OPERATORS.items() for name in options.get(f"disabled_{kind}s", ())
            ]
        program, to = f'torch.export.load("{self.file}")', ""
        if setting.reach == GPU:
            program, to = f"move_to_device_pass({program}, {CUDA!r})", f".to({CUDA!r})"
            lines[:1] = ["from torch.export.passes import move_to_device_pass", ""]
            lines += [] if options.get("tf32", True) else [TF32_OFF]
        threads = f"\ntorch.set_num_threads({count})\n" if (count := options.get("threads")) else ""
        load = _LOAD.format(lines="\n".join(lines), program=program, run=run, threads=threads)
        return Program(load, text.format(to=to))


SYSTEM = Torch()
