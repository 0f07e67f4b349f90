"""A target whose format can't be edited, as an ONNX file that computes the same and can."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conrepair.converters.routes import find_route
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.registry import framework
from conrepair.localization.fed_model import FedModel
from conrepair.repairs.outcomes import Delivery
from conrepair.repairs.verify import agreement, answers
from conrepair.runtime.errors import ConversionError

__all__ = ["as_onnx"]

_SAME = 1e-4  # relative L2 that a conversion of single precision stays below
_SAMPLES = 8


def as_onnx(target: FedModel, folder: Path, reason: str) -> tuple[FedModel, Delivery]:
    """Convert a target, with its faults, and make sure that nothing else changes.

    Args:
        target: The model in question.
        folder: Receives the files.
        reason: Why it can't be edited.

    Raises:
        ConversionError: if no route gives a file that computes the same.
        ConfigError: if there's no route.
    """
    route = find_route(target.model.framework, "onnx", model=target.model)
    folder.mkdir(parents=True, exist_ok=True)
    model = route.convert(target.model, folder)
    found = agreement(
        answers(target, target.model, begin=0, count=_SAMPLES), answers(target, model, begin=0, count=_SAMPLES)
    )
    if not found.error <= _SAME or found.top1_differing:
        raise ConversionError(f"{route.name} gives another network: its outputs differ by {found.error:.1e}")
    inputs = _sized(framework("onnx").describe(model).inputs, target.inputs)
    converted = replace(target, model=model, inputs=inputs)
    return converted, Delivery("onnx", route.name, reason, found.error)


def _sized(inputs: tuple[TensorSpec, ...], known: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """Inputs with the sizes and ranges that are known of the target's."""
    named = {spec.name: spec for spec in known}
    pairs = ((spec, named.get(spec.name, known[place])) for place, spec in enumerate(inputs))
    return tuple(replace(other, name=spec.name, dtype=spec.dtype) for spec, other in pairs)
