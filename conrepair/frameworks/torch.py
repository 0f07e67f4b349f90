"""PyTorch: exported programs (.pt2), TorchScript, and modules built by a factory with a state dict."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.detect import is_torchscript
from conrepair.frameworks.factories import call_factory
from conrepair.frameworks.model import Description, Model
from conrepair.frameworks.runnable import Array, Runnable, load_error
from conrepair.runtime.errors import ModelLoadError

__all__ = ["FRAMEWORK", "TorchFramework", "TorchRunnable", "example_inputs", "load_module"]

_PROBE_BATCH = 2  # exporters treat sizes 0 and 1 as special; 2 stands for "any"


def load_module(model: Model) -> torch.nn.Module:
    """Load a model as something to call, in evaluation mode.

    Args:
        model: A PyTorch model.

    Raises:
        ModelLoadError: if the file can't be read, holds only weights, or is a pickle that isn't trusted.
    """
    path = Path(model.path)
    if model.factory is not None:
        return _build(model)
    if path.suffix == ".pt2":
        try:
            return _Inference(torch.export.load(path).module())
        except Exception as error:
            raise load_error(model, "an exported PyTorch program", error) from error
    try:
        if is_torchscript(path):
            return torch.jit.load(path, map_location="cpu").eval()
    except Exception as error:
        raise load_error(model, "TorchScript", error) from error
    return _unpickle(model)


class TorchRunnable(Runnable):
    """A module on the CPU, without gradients."""

    def __init__(self, model: Model, *, double: bool = False) -> None:
        self.module = load_module(model)
        self.inputs = _input_specs(model, self.module)
        if double:
            self.module = self.module.double()
            self.inputs = tuple(replace(spec, dtype="float64") if spec.is_float else spec for spec in self.inputs)
        self.outputs = _output_specs(self.module, self.inputs)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        arguments = [torch.from_numpy(feeds[spec.name]) for spec in self.inputs]
        with torch.inference_mode():
            outputs = flatten(self.module(*arguments))
        return {spec.name: tensor.numpy() for spec, (_, tensor) in zip(self.outputs, outputs, strict=True)}


class TorchFramework:
    """See `conrepair.frameworks.runnable.Framework`."""

    def describe(self, model: Model) -> Description:
        """Operators are ATen ones where the file has a graph, leaf modules where a factory builds it."""
        runnable = TorchRunnable(model)
        module = runnable.module
        weights: Counter[str] = Counter()
        for tensor in [*module.parameters(), *module.buffers()]:
            weights[_dtype_name(tensor.dtype)] += tensor.numel()
        return Description(
            format=_format(model),
            inputs=runnable.inputs,
            outputs=runnable.outputs,
            operators=dict(sorted(_operators(module).items())),
            parameters=sum(parameter.numel() for parameter in module.parameters()),
            weights=dict(weights),
            producer=f"torch {torch.__version__}",
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """The module; the second opinion computes in float64."""
        return TorchRunnable(model, double=second_opinion)


def example_inputs(inputs: tuple[TensorSpec, ...], batch: int = _PROBE_BATCH) -> tuple[torch.Tensor, ...]:
    """Zeros for every input, symbolic dimensions set to `batch`."""
    return tuple(
        torch.zeros(
            [size if isinstance(size, int) else batch for size in spec.shape],
            dtype=getattr(torch, spec.dtype),
        )
        for spec in inputs
    )


def flatten(value: Any, name: str = "output") -> list[tuple[str, torch.Tensor]]:
    """Name the tensors of a module's result: by key in mappings, by position in sequences."""
    if isinstance(value, torch.Tensor):
        return [(name, value)]
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in flatten(item, str(key))]
    if isinstance(value, list | tuple):
        names = getattr(value, "_fields", None) or [f"{name}_{index}" for index in range(len(value))]
        return [leaf for key, item in zip(names, value, strict=True) for leaf in flatten(item, key)]
    return []


class _Inference(torch.nn.Module):
    """An exported program's module, which refuses train() and eval() though exporters call them."""

    def __init__(self, program: torch.nn.Module) -> None:
        super().__init__()
        self.program = program
        self.training = False

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.program(*arguments)

    def train(self, mode: bool = True) -> _Inference:
        return self


def _build(model: Model) -> torch.nn.Module:
    if model.factory is None:
        raise ValueError("not a factory's model")
    module = call_factory(model.factory)
    if not isinstance(module, torch.nn.Module):
        raise ModelLoadError(f"{model.factory.target} returned {type(module).__name__}, not a torch.nn.Module.")
    try:
        state = torch.load(model.path, map_location="cpu", weights_only=True)
        module.load_state_dict(state)
    except Exception as error:
        raise load_error(model, f"the weights of {model.factory.target}", error) from error
    return module.eval()


def _unpickle(model: Model) -> torch.nn.Module:
    try:
        value = torch.load(model.path, map_location="cpu", weights_only=not model.trust)
    except Exception as error:
        if "weights_only" in str(error) or "Unsupported" in str(error):
            raise ModelLoadError(
                f"{model.path} is a pickled module: loading it would run code. Save it with "
                "torch.export.save (.pt2) or as a state dict with a factory, or set `trust` if you made it."
            ) from error
        raise load_error(model, "a PyTorch file", error) from error
    if isinstance(value, torch.nn.Module):
        return value.eval()
    raise ModelLoadError(
        f"{model.path} holds only weights (a {type(value).__name__}). Name what builds the network: "
        '"factory": "package.module:function", "weights": "this file".'
    )


def _input_specs(model: Model, module: torch.nn.Module) -> tuple[TensorSpec, ...]:
    if isinstance(module, _Inference):
        return _exported_inputs(model)
    names = _argument_names(module)
    if not model.inputs:
        raise ModelLoadError(
            f"{model.path} doesn't record its inputs. Declare them, e.g. "
            '"inputs": [{"shape": ["batch", 3, 224, 224]}] (command line: --input batch,3,224,224).'
        )
    if len(names) < len(model.inputs):
        raise ModelLoadError(f"{model.path}: {len(model.inputs)} inputs are declared, but the network takes {names}.")
    return tuple(replace(spec, name=spec.name or name) for spec, name in zip(model.inputs, names, strict=False))


def _exported_inputs(model: Model) -> tuple[TensorSpec, ...]:
    program = torch.export.load(model.path)
    names = program.graph_signature.user_inputs
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    return tuple(
        TensorSpec(
            str(name),
            tuple(size if isinstance(size, int) else str(size) for size in values[name].shape),
            _dtype_name(values[name].dtype),
        )
        for name in names
        if isinstance(values.get(name), torch.Tensor)
    )


def _argument_names(module: torch.nn.Module) -> list[str]:
    if isinstance(module, torch.jit.ScriptModule):
        return [value.debugName().split(".")[0] for value in list(module.graph.inputs())[1:]]
    parameters = inspect.signature(module.forward).parameters.values()
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ]


def _output_specs(module: torch.nn.Module, inputs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """Run two batch sizes on zeros: dimensions that follow the batch are symbolic."""
    symbolic = next((size for spec in inputs for size in spec.shape[:1] if isinstance(size, str)), None)
    with torch.inference_mode():
        first = flatten(module(*example_inputs(inputs)))
        second = first
        if symbolic is not None:
            second = flatten(module(*example_inputs(inputs, _PROBE_BATCH + 1)))
    return tuple(
        TensorSpec(
            name,
            tuple(a if a == b else str(symbolic) for a, b in zip(one.shape, two.shape, strict=True)),
            _dtype_name(one.dtype),
        )
        for (name, one), (_, two) in zip(first, second, strict=True)
    )


def _operators(module: torch.nn.Module) -> Counter[str]:
    if isinstance(module, torch.jit.ScriptModule):
        return Counter(
            node.kind().removeprefix("aten::")
            for node in module.inlined_graph.nodes()
            if node.kind().startswith("aten::")
        )
    if isinstance(module, _Inference):
        return Counter(
            str(node.target).split(".")[1]
            for node in module.program.graph.nodes
            if node.op == "call_function" and str(node.target).startswith("aten.")
        )
    return Counter(type(part).__name__ for part in module.modules() if not any(part.children()))


def _format(model: Model) -> str:
    if model.factory is not None:
        return f"PyTorch module of {model.factory.target}"
    return "exported PyTorch program" if model.path.endswith(".pt2") else "TorchScript"


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


FRAMEWORK = TorchFramework()
