"""ONNX Runtime's QNN as a plug-in: ONNX files on Qualcomm's NPU, which its libraries simulate on x86."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from conrepair.plugins import (
    Array,
    Backend,
    ConfigError,
    DeviceError,
    InferenceError,
    Model,
    ModelLoadError,
    Runnable,
    Switch,
    describe,
    loading,
)

_PROVIDER = "QNNExecutionProvider"
_OPTIONS = {"fp16": bool, "fallback": bool, "soc_model": int}
_PROGRAM = """\
import onnxruntime
import onnxruntime_qnn

onnxruntime.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == "QNNExecutionProvider"]
settings = onnxruntime.SessionOptions()
settings.add_session_config_entry("session.disable_cpu_ep_fallback", "{fallback}")
settings.add_provider_for_devices(devices, {{"backend_path": onnxruntime_qnn.get_qnn_htp_path()}})
session = onnxruntime.InferenceSession("model.onnx", settings)


def compute(feeds):
    names = [item.name for item in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))
"""
_SOC = 57  # Snapdragon 8 Gen 3, as Qualcomm numbers them


@functools.cache
def _devices() -> list[Any]:
    """What QNN runs on, after its library is told to ONNX Runtime."""
    import onnxruntime
    import onnxruntime_qnn

    onnxruntime.register_execution_provider_library(_PROVIDER, onnxruntime_qnn.get_library_path())
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == _PROVIDER]


class Prepared(Runnable):
    """A model for the NPU, prepared for the sizes that come: it has no open ones."""

    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        """Look at the file.

        Args:
            model: An ONNX file.
            options: Of the backend.

        Raises:
            DeviceError: if QNN's library finds nothing to run on.
        """
        found = describe(model)
        self.inputs, self.outputs = found.inputs, found.outputs
        self._model, self._options, self._sessions = model, options, dict[tuple[tuple[str, int], ...], Any]()
        if not _devices():
            raise DeviceError("there is no device here that QNN can reach, and no simulator of one either")

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        names = [spec.name for spec in self.outputs]
        sizes = {
            str(size): feeds[spec.name].shape[axis]
            for spec in self.inputs
            for axis, size in enumerate(spec.shape)
            if isinstance(size, str)
        }
        key = tuple(sorted(sizes.items()))
        if key not in self._sessions:
            try:
                self._sessions[key] = self._session(sizes)
            except ModelLoadError as error:
                raise InferenceError(str(error)) from error
        return dict(zip(names, self._sessions[key].run(names, dict(feeds)), strict=True))

    def _session(self, sizes: Mapping[str, int]) -> Any:
        import onnxruntime
        import onnxruntime_qnn

        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        for name, size in sizes.items():
            settings.add_free_dimension_override_by_name(name, size)
        if not self._options.get("fallback", False):
            settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        told = {"backend_path": onnxruntime_qnn.get_qnn_htp_path()}
        if self._options.get("fp16", True):  # for a processor that's named
            told |= {"enable_htp_fp16_precision": "1", "soc_model": str(self._options.get("soc_model", _SOC))}
        settings.add_provider_for_devices(_devices(), told)
        with loading(
            self._model, "an ONNX model that runs on QNN whole (option fallback=true lets the processor help)"
        ):
            return onnxruntime.InferenceSession(self._model.path, settings)


class Qnn(Backend):
    """The HTP of Snapdragon processors."""

    runs = "onnx"
    packages: Mapping[str, str] = {"onnxruntime-qnn": "onnxruntime_qnn", "onnxruntime": "onnxruntime"}
    settings: Mapping[str, Mapping[str, Any]] = {"float32": {"fp16": False}, "": {}}
    narrowed = frozenset({"int8", "uint8", "int16", "uint16"})  # which quantized operators compute in

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that there aren't."""
        for name, value in options.items():
            if name not in _OPTIONS:
                raise ConfigError(f"qnn has no option '{name}'; it has: {', '.join(sorted(_OPTIONS))}")
            if type(value) is not _OPTIONS[name]:
                raise ConfigError(f"qnn's option {name} takes {_OPTIONS[name].__name__}, not {value!r}")

    def arithmetic(self, options: Mapping[str, Any]) -> str:
        """Half precision, which processors have; without it their simulator computes in float32."""
        return "float16" if options.get("fp16", True) else "float32"

    def environment(self, options: Mapping[str, Any]) -> Mapping[str, str]:
        """A process for each arithmetic: what prepared one model in half precision does so with all that follow."""
        return {"CONREPAIR_PLUGIN_QNN": self.arithmetic(options)}

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Prepare a model."""
        return Prepared(model, options)

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """Half precision."""
        line = '"enable_htp_fp16_precision": "0"'
        return [Switch("fp16", "arithmetic", line)] if options.get("fp16", True) else []

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """In float32."""
        return {**options, "fp16": False} if names else dict(options)

    def program(self, options: Mapping[str, Any]) -> str:
        """The same of a model by ONNX Runtime alone, in float32."""
        return "" if options.get("fp16", True) else _PROGRAM.format(fallback=int(not options.get("fallback", False)))


BACKEND = Qnn()
