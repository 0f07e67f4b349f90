"""IREE as a plug-in: ONNX files compiled by MLIR for the processor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from conrepair.plugins import Array, Backend, ConfigError, Model, Runnable, Switch, describe, loading

_LEVELS = ("O0", "O1", "O2", "O3")
_PLAIN, _USUAL = "O0", "O2"
_FLAGS = {  # what a level brings that can be left out, by the first level that does
    "iree-opt-strip-assertions": "O1",
    "iree-opt-outer-dim-concat": "O1",
    "iree-opt-generalize-matmul": "O2",
    "iree-opt-data-tiling": "O2",
    "iree-llvmcpu-reassociate-fp-reductions": "O2",
    "iree-opt-aggressively-propagate-transposes": "O3",
    "iree-opt-const-eval": "O0",
}
_OPTIONS = ("level", "off")
_GAP = "failed to legalize operation 'torch."
_PROGRAM = """\
import iree.compiler
import iree.runtime
import onnx
from iree.compiler.extras import onnx_importer
from iree.compiler.ir import Context

model = onnx.shape_inference.infer_shapes(onnx.load("model.onnx"), data_prop=True)
about = onnx_importer.ModelInfo(model)
module = about.create_module(context=Context()).operation
onnx_importer.NodeImporter.define_function(about.main_graph, module).import_all()
made = iree.compiler.compile_str(
    str(module), input_type="onnx", target_backends=["llvm-cpu"], extra_args={arguments}
)
loaded = iree.runtime.load_vm_flatbuffer(made, driver="local-task")


def compute(feeds):
    found = loaded[model.graph.name](*(feeds[item.name] for item in model.graph.input))
    found = found if isinstance(found, (tuple, list)) else [found]
    kinds = (onnx.helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type) for item in model.graph.output)
    arrays = (array.to_host().copy() for array in found)  # whose whole numbers have no sign
    arrays = (array.view(kind) if array.dtype.kind in "iu" else array for array, kind in zip(arrays, kinds))
    return {{item.name: array for item, array in zip(model.graph.output, arrays)}}
"""


def _arguments(options: Mapping[str, Any]) -> list[str]:
    """Options as flags of the compiler: nothing is narrowed, and the instructions are this processor's."""
    return [
        f"--iree-opt-level={options.get('level', _USUAL)}",
        "--iree-llvmcpu-target-cpu=host",
        "--iree-input-demote-f64-to-f32=false",
        "--iree-input-demote-i64-to-i32=false",
        *(f"--{name}=false" for name in options.get("off", ())),
    ]


class Compiled(Runnable):
    """A model that IREE has compiled."""

    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        """Import and compile the model.

        Args:
            model: An ONNX file.
            options: Of the backend.
        """
        import iree.runtime
        import onnx

        found = describe(model)
        self.inputs, self.outputs = found.inputs, found.outputs
        with loading(model, "an ONNX model that IREE compiles"):
            proto = onnx.shape_inference.infer_shapes(onnx.load(model.path), data_prop=True)
            made = _compiled(proto, _arguments(options))
            self._call = iree.runtime.load_vm_flatbuffer(made, driver="local-task")[proto.graph.name]

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        found = self._call(*(feeds[spec.name] for spec in self.inputs))
        arrays = (item.to_host().copy() for item in (found if isinstance(found, tuple | list) else [found]))
        return {spec.name: _signed(array, spec.dtype) for spec, array in zip(self.outputs, arrays, strict=True)}


def _signed(array: Array, dtype: str) -> Array:
    """As the model has it: IREE's whole numbers have no sign."""
    return array.view(dtype) if array.dtype.kind in "iu" and dtype.endswith(array.dtype.name.lstrip("u")) else array


def _compiled(proto: Any, arguments: Sequence[str]) -> Any:
    import iree.compiler
    from iree.compiler.extras import onnx_importer
    from iree.compiler.ir import Context

    about = onnx_importer.ModelInfo(proto)
    module = about.create_module(context=Context()).operation
    onnx_importer.NodeImporter.define_function(about.main_graph, module).import_all()
    try:
        return iree.compiler.compile_str(
            str(module), input_type="onnx", target_backends=["llvm-cpu"], extra_args=list(arguments)
        )
    except iree.compiler.CompilerToolError as error:
        said = str(error)
        error.args = (next((line for line in said.splitlines() if "error:" in line.lower()), said),)  # of many
        if _GAP in said:
            raise NotImplementedError(str(error)) from None
        raise


class Iree(Backend):
    """IREE on the processor; options `level` and `off` (flags of that level to leave out)."""

    runs = "onnx"
    packages: Mapping[str, str] = {
        "iree-base-compiler": "iree.compiler",
        "iree-base-runtime": "iree.runtime",
        "onnx": "onnx",
    }
    settings: Mapping[str, Mapping[str, Any]] = {level: {"level": level} for level in (_PLAIN, _USUAL)}
    seconds = 50

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that there aren't."""
        if unknown := sorted(set(options) - {*_OPTIONS}):
            raise ConfigError(f"iree has no option '{unknown[0]}'; it has: {', '.join(_OPTIONS)}")
        if options.get("level", _USUAL) not in _LEVELS:
            raise ConfigError(f"iree's option level is one of {', '.join(_LEVELS)}")
        if unknown := sorted(set(options.get("off", ())) - _FLAGS.keys()):
            raise ConfigError(f"iree's option off has no flag '{unknown[0]}'; there are: {', '.join(_FLAGS)}")

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Compile a model."""
        return Compiled(model, options)

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """Flags that the level brings, as options."""
        level = options.get("level", _USUAL)
        names = [name for name, first in _FLAGS.items() if first <= level and name not in options.get("off", ())]
        return [Switch(name, "option", f"iree-compile --{name}=false") for name in names]

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """Options without some of these flags."""
        return {**options, "off": sorted({*options.get("off", ()), *names})}

    def program(self, options: Mapping[str, Any]) -> str:
        """The same of a model by IREE alone."""
        return _PROGRAM.format(arguments=_arguments(options))


BACKEND = Iree()
