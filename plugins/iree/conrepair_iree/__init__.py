"""IREE as a plug-in: ONNX files compiled by MLIR for the processor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
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
_HEAD = "from typing import Any\n\n\n"
_GAP = "failed to legalize operation 'torch."


def _arguments(options: Mapping[str, Any]) -> list[str]:
    """Options as flags of the compiler: nothing is narrowed, and the instructions are this processor's."""
    return [
        f"--iree-opt-level={options.get('level', _USUAL)}",
        "--iree-llvmcpu-target-cpu=host",
        "--iree-input-demote-f64-to-f32=false",
        "--iree-input-demote-i64-to-i32=false",
        *(f"--{name}=false" for name in options.get("off", ())),
    ]


def compiled(path: str, arguments: list[str]) -> Any:
    """Compile an ONNX file by IREE alone, with these flags; what computes arrays by name of arrays by name."""
    import iree.compiler
    import iree.runtime
    import onnx
    from iree.compiler.extras import onnx_importer
    from iree.compiler.ir import Context

    model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    about = onnx_importer.ModelInfo(model)
    module = about.create_module(context=Context()).operation
    onnx_importer.NodeImporter.define_function(about.main_graph, module).import_all()
    made = iree.compiler.compile_str(
        str(module), input_type="onnx", target_backends=["llvm-cpu"], extra_args=arguments
    )
    call = iree.runtime.load_vm_flatbuffer(made, driver="local-task")[model.graph.name]

    def compute(feeds: dict[str, Any]) -> dict[str, Any]:
        found = call(*(feeds[item.name] for item in model.graph.input if item.name in feeds))
        found, answers = found if isinstance(found, tuple | list) else [found], {}
        for item, given in zip(model.graph.output, found, strict=True):
            array, kind = given.to_host().copy(), item.type.tensor_type.elem_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)  # whole numbers come without their sign
            signed = array.dtype.kind in "iu" and dtype.name.endswith(array.dtype.name.lstrip("u"))
            answers[item.name] = array.view(dtype) if signed else array
        return answers

    return compute


class Compiled(Runnable):
    """A model that IREE has compiled."""

    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        """Import and compile the model.

        Args:
            model: An ONNX file.
            options: Of the backend.
        """
        import iree.compiler

        found = describe(model)
        self.inputs, self.outputs = found.inputs, found.outputs
        with loading(model, "an ONNX model that IREE compiles"):
            try:
                self._compute = compiled(model.path, _arguments(options))
            except iree.compiler.CompilerToolError as error:
                said = str(error)
                error.args = (
                    next((line for line in said.splitlines() if "error:" in line.lower()), said),
                )  # of many
                if _GAP in said:
                    raise NotImplementedError(str(error)) from None
                raise

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return dict(self._compute(dict(feeds)))


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
        return f"{_HEAD}{inspect.getsource(compiled)}\n\ncompute = compiled('model.onnx', {_arguments(options)})\n"


BACKEND = Iree()
