"""TVM: each application of a pass is a switch, and what its target lets LLVM do with numbers."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from conrepair.formats.backends.base import CUDA
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.networks.network import Network
from conrepair.formats.networks.tvm import open_build
from conrepair.formats.tvm.cuda import EXACT
from conrepair.formats.tvm.import_onnx import write_definite
from conrepair.formats.tvm.options import TvmOptions, read_options
from conrepair.formats.tvm.runnable import TvmRunnable
from conrepair.formats.tvm.settings import TUNED, PlacedPass, steps_of
from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.processes.reach import GPU
from conrepair_lab.systems.system import Program, Setting, System

_FAST = {"setting": "O3", "required_pass": ["FastMathTransform"], "target": "llvm -mcpu=native"}
_BACKENDS_OWN = {"DispatchSampling", "DispatchSortScan"}  # passes of `relax.backend`
_PASSES = {"setting", "required_pass", "disabled_pass", "left_out", "fusion_depth", "vectorize"}
_SAID = _PASSES | {"target", "importer", "fast_math", "threads", "symbolic"}  # options that programs have
_PLAIN_LOOPS = 0.25  # share of drawn options
_THIS_PROCESSOR = 'str(tvm.get_global_func("target.llvm_get_system_cpu")())'
_POOL = 'tvm.get_global_func("runtime.config_threadpool")(-1, {})\n'
_LOAD = '''\
{environment}import numpy
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
{imports}
LEFT_OUT = {left_out}


@tvm.ir.instrument.pass_instrument
class LeaveOut:
    """Applications of passes that don't run: a name and how often it was to run before, or a name for all."""

    def __init__(self):
        self.met, self.ran, self.inside = [], [], []

    def should_run(self, module, info):
        if info.name in {{"sequential", "_pipeline"}} or not {{"sequential", "_pipeline"}}.issuperset(self.inside):
            return True
        application = f"{{info.name}}#{{self.met.count(info.name)}}"
        self.met.append(info.name)
        if info.name in LEFT_OUT or application in LEFT_OUT:
            return False
        self.ran.append(application)
        return True

    def run_before_pass(self, module, info):
        self.inside.append(info.name)

    def run_after_pass(self, module, info):
        self.inside.pop()


model = onnx.load("{file}")
module = from_onnx(model, keep_params_in_input=False)
target = {target}
passes = [
{passes}
]
leave_out = LeaveOut()
with target, tvm.transform.PassContext(opt_level=3, instruments=[leave_out], config={config}):
    for step in passes:
        module = step(module)
    built = relax.build(module, target, relax_pipeline=None)
{threads}device = tvm.{device}()
machine = relax.VirtualMachine(built, device)
'''
_RUN = """\
with numpy.load("inputs.npz") as inputs:
    read = [(item.type.tensor_type.elem_type, inputs[item.name]) for item in model.graph.input if item.name in inputs]
fed = [array.astype(onnx.helper.tensor_dtype_to_np_dtype(kind)) for kind, array in read]
found = machine["main"](*(tvm.runtime.tensor(array, device) for array in fed))
found = [found] if hasattr(found, "numpy") else list(found)
outputs = {item.name: array.numpy() for item, array in zip(model.graph.output, found)}
numpy.savez("outputs.npz", **outputs)
"""


class Tvm(System):
    """See `System`; a build takes seconds."""

    name = "tvm"
    settings = MappingProxyType(
        {name: Setting("tvm", {"setting": name}) for name in ("O0", "O1", "O2", "O3")}
        | {"fastmath": Setting("tvm", {**_FAST, "target": "llvm"}), "fast": Setting("tvm", _FAST)}
        | {
            "cuda-O2": Setting("tvm", {"setting": "O2", "target": CUDA}),
            "cuda": Setting("tvm", {"setting": "O3", "target": CUDA}),
            "cuda-ieee": Setting("tvm", {"setting": "O3", "target": CUDA, "fast_math": False}),
        }
    )
    plain, usual, fusion = "O0", "O3", "fusion_depth"
    seconds = 20
    alike = True

    def observed(self, model: Model, setting: Setting, folder: Path) -> Network | None:
        """A build, whose kernels can be run one by one."""
        found = self.open(model, setting, folder)
        if not isinstance(found, TvmRunnable):
            raise ConversionError("a build on another machine can't be looked into; build for this one")
        return open_build(found.folder, model)

    def with_threads(self, opened: Runnable, model: Model, setting: Setting, folder: Path, count: int) -> Runnable:
        """The same build in a pool that has so many at work."""
        return TvmRunnable(opened.folder, count) if isinstance(opened, TvmRunnable) else opened

    def symbolic(self, setting: Setting) -> Setting | None:
        """On this machine's processor."""
        if setting.reach == GPU:
            return None
        return setting.with_options({**setting.options, "symbolic": True})

    def distribution(self, setting: Setting) -> str:
        """TVM's, where programs take no schedules of conrepair, and say all that the options do."""
        options = read_options(setting.options)
        ours = any(_schedule(step) for step in _steps(options)) or options.importer not in {None, self.format}
        return "" if ours or _unsaid(options) else "apache-tvm"

    def sized(self, model: Model, batch: int, folder: Path) -> Model:
        """As its importer takes it."""
        path = Path(tempfile.mkdtemp(dir=folder)) / self.file
        write_definite(model, batch, path)
        return Model(self.format, str(path), model_sha256(path))

    def drawn(self, setting: Setting, generator: np.random.Generator) -> dict[str, Any]:
        """Some passes are left out, fewer operators fused, or nothing is vectorized."""
        steps = [step.name for step in _steps(read_options(setting.options)) if not step.mandatory]
        count = min(len(steps), int(generator.integers(0, 4)))
        found: dict[str, Any] = {"fusion_depth": int(generator.choice([1, 2, 3, 256]))}
        if count:
            found["disabled_pass"] = sorted(map(str, generator.choice(steps, count, replace=False)))
        return found | ({"vectorize": False} if generator.random() < _PLAIN_LOOPS else {})

    def program(self, setting: Setting) -> Program:
        """The pipeline pass by pass; schedules of `conrepair.formats.tvm.settings` are taken from there."""
        options = read_options(setting.options)
        steps = _steps(options)
        schedules = sorted(filter(None, map(_schedule, steps)))
        imports = [f"from conrepair.formats.tvm.settings import {name}\n" for name in schedules]
        load = _LOAD.format(
            imports="".join(imports),
            environment="" if options.fast_math else f"import os\n\nos.environ |= {EXACT}\n",
            device=CUDA if options.parsed_target.on_gpu else "cpu",
            left_out=sorted(options.left_out),
            file=self.file,
            target=_target(options),
            passes="\n".join(f"    {_written(step)}," for step in steps),
            config=options.pass_config,
            threads=_POOL.format(options.threads) if options.threads else "",
        )
        return Program(load, _RUN, '{"applications": leave_out.ran, "target": str(target)}')


def _unsaid(options: TvmOptions) -> bool:
    """Whether a program wouldn't do what they say."""
    return any(
        getattr(options, item.name) != item.default for item in dataclasses.fields(options) if item.name not in _SAID
    )


def _steps(options: TvmOptions) -> list[PlacedPass]:
    return steps_of(options.parsed_target, options.setting, options.required_pass, options.disabled_pass)


def _schedule(step: PlacedPass) -> str:
    """The function of `conrepair.formats.tvm.settings` that makes a pass; "" of TVM's own."""
    return "gpu_fallback" if step.name == TUNED else getattr(step.make, "__name__", "")


def _written(step: PlacedPass) -> str:
    if _schedule(step):
        return f"{_schedule(step)}()"
    return f"relax.{'backend' if step.name in _BACKENDS_OWN else 'transform'}.{step.name}()"


def _target(options: TvmOptions) -> str:
    """As Python: this machine's processor is asked for where the program runs."""
    parsed = options.parsed_target
    parts = [f'"kind": "{parsed.kind}"']
    for name, value in parsed.attributes.items():
        native = (name, value) == ("mcpu", "native")
        parts.append(f'"{name}": {_THIS_PROCESSOR if native else repr(value)}')
    target = f"tvm.target.Target({{{', '.join(parts)}}})"
    return f'{target}.with_host(tvm.target.Target("llvm"))' if parsed.on_gpu else target


SYSTEM = Tvm()
