"""Faults that PyTorch puts in: modules' attributes, their numbers, modules in each other's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.injecting.fault import Means, OwnFault
from benchmarks.common.injecting.numbers import BIASES, WEIGHTS
from benchmarks.faults.hyperparameters.epsilon_of_another_library import other_epsilon
from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["BY_TORCH"]

_WEIGHTED = ("Conv1d", "Conv2d", "Linear")
_NORMS = ("BatchNorm2d", "LayerNorm", "GroupNorm")
_OTHERS = {
    "Hardswish": ("SiLU", ()),
    "SiLU": ("Hardswish", ()),
    "Sigmoid": ("Hardsigmoid", ()),
    "Hardsigmoid": ("Sigmoid", ()),
    "ELU": ("SELU", ()),
    "LeakyReLU": ("ReLU", ()),
    "GELU": ("GELU", ("tanh",)),
    "Tanh": ("Hardtanh", ()),
    "Softplus": ("ReLU", ()),
}
_BOUNDS = {"ReLU6": ("ReLU", ()), "ReLU": ("ReLU6", ())}
_ATTRIBUTES = {"slope": ("LeakyReLU", "negative_slope", 0.01, 0.2), "alpha": ("ELU", "alpha", 1.0, 0.5)}


class _Opened:
    """A network with what it's exported by."""

    def __init__(self, model: Model) -> None:
        from conrepair.formats.torch.load.framework import TorchRunnable

        self.model = model
        self.arguments = TorchRunnable(model)
        self.network = self.arguments.module

    def modules(self, *sorts: str) -> list[str]:
        return [name for name, item in self.network.named_modules() if name and type(item).__name__ in sorts]

    def get(self, name: str) -> Any:
        return self.network.get_submodule(name)


def _write(opened: _Opened, folder: Path) -> Model:
    import torch

    axes = [
        {axis: torch.export.Dim.AUTO for axis, size in enumerate(spec.shape) if isinstance(size, str)}
        for spec in opened.arguments.inputs
    ]
    program = torch.export.export(opened.network.eval(), opened.arguments.examples, dynamic_shapes=tuple(axes))
    path = folder / "model.pt2"
    torch.export.save(program, path)
    return Model("torch", str(path), sha256_of(path), inputs=opened.model.inputs)


def _numbers(
    role: str, compute: Callable[..., Any], words: str, *more: Any, sorts: Sequence[str] = _WEIGHTED
) -> OwnFault:
    """A change of one of a module's tensors."""

    def places(opened: _Opened) -> list[str]:
        tensors = ((name, getattr(opened.get(name), role, None)) for name in opened.modules(*sorts))
        return [name for name, tensor in tensors if tensor is not None and tensor.numel() > 1]

    def change(opened: _Opened, name: str, generator: np.random.Generator) -> str:
        import torch

        tensor = getattr(opened.get(name), role)
        with torch.no_grad():
            changed = compute(tensor.detach().numpy(), generator, *more)
            tensor.copy_(torch.from_numpy(np.ascontiguousarray(changed)))
        return words.format(name=name)

    return OwnFault(Kind.PRECISION if "bits" in words or "float16" in words else Kind.PARAMETERS, places, change)


def _attribute(sort: str, attribute: str, one: float, two: float) -> OwnFault:
    def change(opened: _Opened, name: str, _: np.random.Generator) -> str:
        module = opened.get(name)
        before = getattr(module, attribute)
        setattr(module, attribute, two if abs(before - one) < 1e-9 else one)
        return f"{attribute} of {name} is {getattr(module, attribute):g} instead of {before:g}"

    return OwnFault(Kind.HYPERPARAMETERS, lambda opened: opened.modules(sort), change)


def _epsilon(opened: _Opened, name: str, generator: np.random.Generator) -> str:
    module = opened.get(name)
    before, module.eps = module.eps, other_epsilon(module.eps, generator)
    return f"epsilon of {name} is {module.eps:g} instead of {before:g}"


def _dilated(opened: _Opened, name: str, _: np.random.Generator) -> str:
    module = opened.get(name)
    before, after = (1, 2) if module.dilation[0] == 1 else (module.dilation[0], 1)
    module.padding = tuple(pad // before * after for pad in module.padding)
    module.dilation = tuple(after for _ in module.dilation)
    return f"dilation of {name} is {after} instead of {before}"


def _padded(opened: _Opened, name: str, _: np.random.Generator) -> str:
    opened.get(name).padding_mode = "replicate"
    return f"{name} is padded by its edge"


def _convolutions(opened: _Opened) -> list[str]:
    return [name for name in opened.modules("Conv2d") if any(opened.get(name).padding)]


def _counted(opened: _Opened, name: str, _: np.random.Generator) -> str:
    module = opened.get(name)
    module.count_include_pad = not module.count_include_pad
    return f"{name} counts its padding: {module.count_include_pad}"


def _replaced(opened: _Opened, name: str, _: np.random.Generator) -> str:
    from torch import nn

    before = type(opened.get(name)).__name__
    after, arguments = (_OTHERS | _BOUNDS)[before]
    opened.network.set_submodule(name, getattr(nn, after)(*arguments))
    return f"{name} is {after}{arguments or ''} instead of {before}"


def _gone(opened: _Opened, name: str, _: np.random.Generator) -> str:
    from torch import nn

    opened.network.set_submodule(name, nn.Identity())
    return f"{name} is gone"


def _gates(opened: _Opened, name: str, _: np.random.Generator) -> str:
    import torch

    module = opened.get(name)
    with torch.no_grad():
        for role, tensor in module.named_parameters():
            if role.endswith("_l0"):
                parts = tensor.chunk(4 if type(module).__name__ == "LSTM" else 3)
                tensor.copy_(torch.cat([parts[1], parts[0], *parts[2:]]))
    return f"two gates of {name} are exchanged"


def _flipped(opened: _Opened, name: str, _: np.random.Generator) -> str:
    opened.network.register_forward_pre_hook(lambda _, given: (given[0].flip(1), *given[1:]))
    return "the second axis of the input runs back"


def _named(*sorts: str) -> Callable[[_Opened], list[str]]:
    return lambda opened: opened.modules(*sorts)


BY_TORCH = Means(
    "by-torch",
    _Opened,
    _write,
    {
        **{name: _numbers("weight", compute, words, 0) for name, (compute, words) in WEIGHTS.items()},
        **{name: _numbers("bias", compute, words) for name, (compute, words) in BIASES.items()},
        "statistics-lost": _numbers(
            "running_mean", lambda array, _: np.zeros_like(array), "the mean of {name} is lost", sorts=_NORMS[:1]
        ),
        "norm-scale-inverted": _numbers("weight", lambda array, _: 1 / array, "1 / scale in {name}", sorts=_NORMS),
        "epsilon": OwnFault(Kind.HYPERPARAMETERS, _named(*_NORMS), _epsilon),
        "dilation": OwnFault(Kind.HYPERPARAMETERS, _convolutions, _dilated),
        "padded-by-edge": OwnFault(Kind.GRAPH, _convolutions, _padded),
        "padding-counted": OwnFault(
            Kind.HYPERPARAMETERS,
            lambda opened: [name for name in opened.modules("AvgPool2d") if opened.get(name).padding],
            _counted,
        ),
        "activation-replaced": OwnFault(Kind.GRAPH, _named(*_OTHERS), _replaced),
        "bound": OwnFault(Kind.HYPERPARAMETERS, _named(*_BOUNDS), _replaced),
        "activation-lost": OwnFault(Kind.GRAPH, _named(*_OTHERS, *_BOUNDS), _gone),
        "norm-lost": OwnFault(Kind.GRAPH, _named(*_NORMS), _gone),
        "gates-exchanged": OwnFault(Kind.PARAMETERS, _named("LSTM", "GRU"), _gates),
        "input-reversed": OwnFault(Kind.PREPROCESSING, lambda _: ["input"], _flipped),
        **{name: _attribute(*about) for name, about in _ATTRIBUTES.items()},
    },
)
