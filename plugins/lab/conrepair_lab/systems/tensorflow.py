"""TensorFlow: eager, and compiled by XLA, whose passes and flags are switches of a process."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.verdicts.truth.widening import doubled
from conrepair_lab.systems.system import Program, Setting, System

_EAGER, _COMPILED = "libraries", "xla"
_LOAD = """\
{environment}import numpy
import tensorflow

model = tensorflow.saved_model.load("{file}")  # holds the variables
function = model.signatures["serving_default"]
kinds = function.structured_input_signature[1]
{own}run = {run}
"""
_RUN = """\
with numpy.load("inputs.npz") as inputs:
    fed = {name: tensorflow.cast(inputs[name], kinds[name].dtype) for name in inputs.files}
found = run(**fed)
names = sorted(found, key=lambda name: (len(name), name))  # they come in any order, numbered
numpy.savez("outputs.npz", **{name: found[name].numpy() for name in names})
"""
_DIFFERENTIATED = """

def differentiated(arguments, cotangents):
    real = {name: tensor for name, tensor in arguments.items() if tensor.dtype.is_floating}
    with tensorflow.GradientTape() as tape:
        tape.watch(real)
        found = function(**arguments)
        found = {name: found[name] for name in cotangents}
    return tape.gradient(found, real, cotangents, unconnected_gradients="zero")


"""
_TRAINING = """\
with numpy.load("inputs.npz") as inputs:
    arguments = {name: tensorflow.cast(inputs[name], kinds[name].dtype) for name in inputs.files}
cotangents = {
    name: tensorflow.constant(numpy.random.default_rng(0).standard_normal(tensor.shape), tensor.dtype)
    for name, tensor in function(**arguments).items()
    if tensor.dtype.is_floating
}
products = run(arguments, cotangents)
numpy.savez(
    "outputs.npz", **{name: tensorflow.convert_to_tensor(product).numpy() for name, product in products.items()}
)
"""


class Tensorflow(System):
    """See `System`; the model is imported by conrepair's own importer. A setting of XLA is a process."""

    name, format, file = "tensorflow", "tensorflow", "saved_model"
    settings = MappingProxyType(
        {"eager": Setting(_EAGER), "xla": Setting(_COMPILED), "fast": Setting(_COMPILED, {"fast_math": True})}
    )
    plain, usual = "eager", "xla"
    seconds = 20
    trains = True

    def symbolic(self, setting: Setting) -> Setting | None:
        """Uncompiled as it is; XLA compiles for each size."""
        return setting if setting.backend == _EAGER else None

    def gradients(self, model: Model, setting: Setting, folder: Path, *, double: bool = False) -> Runnable:
        """By a tape; in float64 of a file in which all is widened."""
        if double:
            path = folder / f"{model.sha256[:12]}.double.onnx"
            path.write_bytes(doubled(read_proto(Path(model.path))).SerializeToString())
            model = Model("onnx", str(path), model_sha256(path))
        return super().gradients(model, setting, folder)

    def program(self, setting: Setting) -> Program:
        """The SavedModel's function, as it is or compiled."""
        return Program(self._load("function", setting), _RUN)

    def training_program(self, setting: Setting) -> Program:
        """By a tape, which is compiled together with the function."""
        return Program(self._load("differentiated", setting, _DIFFERENTIATED), _TRAINING)

    def _load(self, run: str, setting: Setting, own: str = "") -> str:
        variables = self.environment(setting)
        said = "".join(f"os.environ[{name!r}] = {value!r}\n" for name, value in variables.items())
        run = run if setting.backend == _EAGER else f"tensorflow.function({run}, jit_compile=True)"
        environment = f"import os\n\n{said}\n" if said else ""
        return _LOAD.format(environment=environment, file=self.file, own=own, run=run)


SYSTEM = Tensorflow()
