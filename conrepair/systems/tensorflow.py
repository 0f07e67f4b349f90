"""TensorFlow: eager, and compiled by XLA, whose passes and flags are switches of a process."""

from __future__ import annotations

from types import MappingProxyType

from conrepair.systems.program import Program
from conrepair.systems.system import Setting, System

__all__ = ["SYSTEM"]

_EAGER, _COMPILED = "libraries", "xla"
_LOAD = """\
{environment}import numpy
import tensorflow

model = tensorflow.saved_model.load("{file}")  # holds the variables
function = model.signatures["serving_default"]
run = {run}
"""
_RUN = """\
with numpy.load("inputs.npz") as inputs:
    found = run(**{name: tensorflow.constant(inputs[name]) for name in inputs.files})
numpy.savez("outputs.npz", **{name: tensor.numpy() for name, tensor in found.items()})
"""


class Tensorflow(System):
    """See `System`; the model is imported by conrepair's own importer. A setting of XLA is a process."""

    name, format, file = "tensorflow", "tensorflow", "saved_model"
    settings = MappingProxyType(
        {
            "eager": Setting(_EAGER),
            "xla": Setting(_COMPILED),
            "fast": Setting(_COMPILED, {"fast_math": True}),
        }
    )
    plain, usual = "eager", "xla"
    seconds = 20

    def program(self, setting: Setting) -> Program:
        """The SavedModel's function, as it is or compiled."""
        variables = self.environment(setting)
        said = "".join(f"os.environ[{name!r}] = {value!r}\n" for name, value in variables.items())
        run = "function" if setting.backend == _EAGER else "tensorflow.function(function, jit_compile=True)"
        load = _LOAD.format(environment=f"import os\n\n{said}\n" if said else "", file=self.file, run=run)
        return Program(load, _RUN)


SYSTEM = Tensorflow()
