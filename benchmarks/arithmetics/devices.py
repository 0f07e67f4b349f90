"""What computes networks as devices do: our own simulation, and others' code."""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import subprocess
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import nn

from benchmarks.arithmetics.rounding import ARITHMETICS
from benchmarks.arithmetics.simulated import simulated

__all__ = ["DEVICES", "Computed", "Device", "Given", "Missing", "opened"]

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
_HERE = Path(__file__).parent
_LONGEST = 120.0  # seconds that an interpreter may take


class Missing(Exception):  # noqa: N818 (it's no error)
    """A device isn't there, or can't compute so; the message says why."""


@dataclass(frozen=True)
class Given:
    """A network as a device gets it.

    Attributes:
        module: Of PyTorch.
        path: The same as ONNX.
        feed: Samples.
        names: Tensors of the ONNX file by the module whose result each is.
    """

    module: nn.Module
    path: Path
    feed: Array
    names: Mapping[str, str]


@dataclass(frozen=True)
class Computed:
    """What a device computed.

    Attributes:
        outputs: Where nothing else was asked for.
        recorded: Tensors on the way, and outputs beside them.
    """

    outputs: Arrays
    recorded: Arrays


class Device(ABC):
    """Something that computes.

    Attributes:
        about: Its version, and what it can.
    """

    about: str = ""
    arithmetics: tuple[str, ...]

    @abstractmethod
    def compute(self, given: Given, arithmetic: str, scratch: Path) -> Computed:
        """Run a network.

        Args:
            given: The network.
            arithmetic: One of `arithmetics`.
            scratch: For files.

        Raises:
            Missing: if it can't.
        """

    def close(self) -> None:  # noqa: B027 (most have nothing to end)
        """End processes."""


class Own(Device):
    """Our own simulation."""

    arithmetics = tuple(ARITHMETICS)

    def compute(self, given: Given, arithmetic: str, scratch: Path) -> Computed:
        """See `Device`."""
        model = onnx.load(given.path)
        found = simulated(model, {"given": given.feed}, ARITHMETICS[arithmetic])
        return _computed(found, _recordable(found, given), given)


class PyTorch(Device):
    """PyTorch on the processor, modules and inputs in another type, or with subnormal numbers flushed."""

    arithmetics = ("bfloat16", "float16", "flushed", "float32")
    about = f"PyTorch {torch.__version__}"

    def compute(self, given: Given, arithmetic: str, scratch: Path) -> Computed:
        """See `Device`."""
        found: Arrays = {}
        module, feed = copy.deepcopy(given.module), torch.from_numpy(given.feed)
        if dtype := _TYPES.get(arithmetic):
            module = module.to(dtype)
            feed = feed.to(dtype) if feed.is_floating_point() else feed

        def hook(name: str) -> Any:
            def keep(_module: nn.Module, _given: Any, made: Any) -> None:
                made = made[0] if isinstance(made, tuple) else made
                found[given.names[name]] = made.float().numpy().copy()

            return keep

        for name, part in module.named_modules():
            if name in given.names:
                part.register_forward_hook(hook(name))
        with torch.no_grad(), _flushing(arithmetic == "flushed"):
            try:
                made = module(feed)
            except RuntimeError as error:
                raise Missing(f"PyTorch: {error}"[:200]) from error
        found["made"] = made.float().numpy()
        return _computed(found, found, given)


@contextlib.contextmanager
def _flushing(flush: bool) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(flush)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)


class _Process(Device):
    """Another interpreter that answers line by line; one that ends or is stopped is started again."""

    def __init__(self, python: str, script: str) -> None:
        self._command = [python, str(_HERE / script)]
        self.told = self._start()

    def _start(self) -> dict[str, Any]:
        self._child = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        return self._line()

    def _line(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        watch = threading.Timer(_LONGEST, self._child.kill)
        watch.start()
        try:
            for line in self._child.stdout:
                if line.startswith("answer "):
                    found: dict[str, Any] = json.loads(line.removeprefix("answer "))
                    return found
        finally:
            watch.cancel()
        raise Missing(f"its interpreter ended with {self._child.wait()}")

    def ask(self, scratch: Path, **asked: Any) -> Arrays:
        """What it computed.

        Raises:
            Missing: if it can't, ends, or takes too long.
        """
        if self._child.poll() is not None:
            self._start()
        path = scratch / "computed.npz"
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"outputs": str(path), **asked}) + "\n")
        self._child.stdin.flush()
        if error := self._line().get("error"):
            raise Missing(error)
        with np.load(path) as stored:
            return dict(stored)

    def close(self) -> None:
        """See `Device`."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(timeout=_LONGEST)


class OpenVino(_Process):
    """OpenVINO's plugin for the processor: bfloat16 by itself where the processor has that."""

    arithmetics = ("bfloat16", "float16", "float32", "int32", "flushed")

    def __init__(self, python: str) -> None:
        super().__init__(python, "openvino_device.py")
        self.about = f"OpenVINO {self.told['version']}, {self.told['usual']} unless told otherwise"
        can = self.told["can"]
        less = {"bfloat16": self.told["usual"] == "bf16", "float16": "FP16" in can}
        self.arithmetics = tuple(name for name in self.arithmetics if less.get(name, True))

    def compute(self, given: Given, arithmetic: str, scratch: Path) -> Computed:
        """See `Device`."""
        properties: dict[str, Any] = {"INFERENCE_NUM_THREADS": 1}
        if arithmetic == "float16":
            properties["INFERENCE_PRECISION_HINT"] = "f16"
        elif arithmetic != "bfloat16":
            properties["INFERENCE_PRECISION_HINT"] = "f32"
            properties["CPU_DENORMALS_OPTIMIZATION"] = arithmetic == "flushed"
        inputs = scratch / "given.npz"
        np.savez(inputs, given=given.feed)
        asked: dict[str, Any] = {"model": str(given.path), "inputs": str(inputs), "properties": properties}
        outputs = self.ask(scratch, **asked, tensors=[])
        nodes = onnx.load(given.path).graph.node
        tensors = [name for node in nodes if node.op_type != "Constant" for name in node.output if name != "made"]
        found = self.ask(scratch, **asked, tensors=tensors)
        return _computed(outputs, _recordable(found, given), given)


class _Quantized(Device):
    """What runs a network of 8 bits that ONNX Runtime's quantization wrote."""

    arithmetics = ("int8",)

    def compute(self, given: Given, arithmetic: str, scratch: Path) -> Computed:
        """See `Device`."""
        path = _quantized(given, scratch)
        outputs = self._run(path, given, scratch)
        model = onnx.load(path)
        named = _dequantized(model)
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in named if name != "made")
        onnx.save(model, path)
        found = self._run(path, given, scratch)
        recorded = {named.get(name, name): array for name, array in found.items()}
        return _computed(outputs, _recordable(recorded, given), given)

    @abstractmethod
    def _run(self, path: Path, given: Given, scratch: Path) -> Arrays:
        """All outputs of a file."""


class OnnxRuntime(_Quantized):
    """ONNX Runtime on the processor."""

    def __init__(self) -> None:
        import onnxruntime

        self.about = f"ONNX Runtime {onnxruntime.__version__}"

    def _run(self, path: Path, given: Given, scratch: Path) -> Arrays:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [item.name for item in session.get_outputs()]
        return dict(zip(names, session.run(names, {"given": given.feed}), strict=True))


class Qnn(_Quantized, _Process):
    """Qualcomm's HTP, simulated."""

    def __init__(self, python: str) -> None:
        _Process.__init__(self, python, "qnn_device.py")
        self.about = f"QNN's HTP, simulated, of onnxruntime-qnn {self.told['version']}"

    def _run(self, path: Path, given: Given, scratch: Path) -> Arrays:
        inputs = scratch / "given.npz"
        np.savez(inputs, given=given.feed)
        return self.ask(scratch, model=str(path), inputs=str(inputs))


def _quantized(given: Given, scratch: Path) -> Path:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = [{"given": given.feed}]

        def get_next(self) -> Any:
            return self._left.pop() if self._left else None

    model = onnx.load(given.path)
    make_dim_param_fixed(model.graph, "batch", len(given.feed))
    fixed, path = scratch / "fixed.onnx", scratch / "eight_bits.onnx"
    onnx.save(model, fixed)
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        try:
            quantize_static(
                fixed,
                path,
                Reader(),
                quant_format=QuantFormat.QDQ,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                per_channel=True,
            )
        except Exception as error:
            raise Missing(f"quantization: {type(error).__name__}: {error}"[:200]) from error
    return path


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the quantizer advises."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _dequantized(model: onnx.ModelProto) -> dict[str, str]:
    """Names of dequantized tensors, and of which tensor each is."""
    quantized = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    made = {name for node in model.graph.node for name in node.output}
    found = {}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and quantized.get(node.input[0]) in made:
            found[node.output[0]] = quantized[node.input[0]]
    return found


def _recordable(found: Mapping[str, Array], given: Given) -> Arrays:
    """Real numbers with samples in front."""
    return {name: a for name, a in found.items() if a.dtype.kind == "f" and a.ndim and len(a) == len(given.feed)}


def _computed(outputs: Mapping[str, Array], recorded: Mapping[str, Array], given: Given) -> Computed:
    return Computed({"made": outputs["made"]}, {**recorded, "made": recorded.get("made", outputs["made"])})


DEVICES = ("own", "pytorch", "onnxruntime", "openvino", "qnn")
"""Names."""


def opened(name: str, pythons: Mapping[str, str | None]) -> Device:
    """Start a device.

    Args:
        name: Of `DEVICES`.
        pythons: Interpreters by device.

    Raises:
        Missing: if it isn't there.
    """
    if name == "own":
        return Own()
    if name == "pytorch":
        return PyTorch()
    if name == "onnxruntime":
        return OnnxRuntime()
    python = pythons.get(name)
    if python is None:
        raise Missing(f"no interpreter is given by --{name}")
    return OpenVino(python) if name == "openvino" else Qnn(python)
