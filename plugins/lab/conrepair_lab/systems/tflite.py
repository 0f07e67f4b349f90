"""TFLite: with its delegate (XNNPACK), with its own kernels, and with plain loops."""

from __future__ import annotations

from types import MappingProxyType

from conrepair_lab.systems.system import Program, Setting, System

_KERNELS = {"reference": "BUILTIN_REF", "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "delegate": "AUTO"}
_LOAD = """\
import numpy
from ai_edge_litert.interpreter import Interpreter, OpResolverType

interpreter = Interpreter("{file}", experimental_op_resolver_type=OpResolverType.{kernels}{threads})
interpreter.allocate_tensors()
"""
_RUN = """\
with numpy.load("inputs.npz") as inputs:
    for item in interpreter.get_input_details():
        name = item["name"].removeprefix("serving_default_").partition(":")[0]
        interpreter.set_tensor(item["index"], inputs[name])
interpreter.invoke()
outputs = {item["name"]: interpreter.get_tensor(item["index"]) for item in interpreter.get_output_details()}
numpy.savez("outputs.npz", **outputs)
"""


class Tflite(System):
    """See `System`; the model comes from ONNX by way of Keras."""

    name, format, file = "tflite", "tflite", "model.tflite"
    settings = MappingProxyType({name: Setting("tflite", {"kernels": name}) for name in _KERNELS})
    plain, usual = "reference", "delegate"
    seconds = 10
    alike = True

    def program(self, setting: Setting) -> Program:
        """An interpreter."""
        kernels = _KERNELS[str(setting.options.get("kernels", "delegate"))]
        count = setting.options.get("threads")
        threads = f", num_threads={count}" if count else ""
        return Program(_LOAD.format(file=self.file, kernels=kernels, threads=threads), _RUN)


SYSTEM = Tflite()
