"""A converted model that is fed and answers by the names of the ONNX file that it was made of."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.runnable import Array, Runnable
from conrepair.runtime.errors import ConversionError

__all__ = ["named"]

_INPUTS = "inputs"
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*)")


def named(runnable: Runnable, inputs: Sequence[str], outputs: Sequence[str]) -> Runnable:
    """Give a model the names of another.

    Args:
        runnable: What converters made; they keep names, or number inputs and outputs in order.
        inputs: Names in the order of the ONNX file.
        outputs: The same of outputs.

    Raises:
        ConversionError: if it has more or fewer of them.
    """
    fed, given = _by_name(runnable.inputs, inputs, _INPUTS), _by_name(runnable.outputs, outputs, "outputs")
    return _Named(runnable, fed, given)


def _by_name(specs: Sequence[TensorSpec], names: Sequence[str], what: str) -> dict[str, TensorSpec]:
    if len({spec.name for spec in specs}) < len(specs):  # TFLite does so with equal computations
        raise ConversionError(f"several {what} of what converters made have one name, so which is which isn't known")
    own = {spec.name: spec for spec in specs}
    if set(own) == set(names):
        return {name: own[name] for name in names}
    if what == _INPUTS and set(own) < set(names):  # converters leave out what nobody reads
        return own
    if len(specs) != len(names):
        raise ConversionError(f"the model has {len(names)} {what}, and what converters made of it {len(specs)}")
    parts = [match.groups() for spec in specs if (match := _NUMBERED.fullmatch(spec.name))]
    ordered = list(specs)
    if len(parts) == len(specs) and len({(before, behind) for before, _, behind in parts}) == 1:
        ordered = [spec for _, spec in sorted(zip(parts, specs, strict=True), key=lambda pair: int(pair[0][1]))]
    return dict(zip(names, ordered, strict=True))


class _Named(Runnable):
    def __init__(self, runnable: Runnable, fed: Mapping[str, TensorSpec], given: Mapping[str, TensorSpec]) -> None:
        self._runnable = runnable
        self._fed = {name: spec.name for name, spec in fed.items()}
        self._given = {name: spec.name for name, spec in given.items()}
        self.inputs = tuple(dataclasses.replace(spec, name=name) for name, spec in fed.items())
        self.outputs = tuple(dataclasses.replace(spec, name=name) for name, spec in given.items())

    def run(self, feeds: Mapping[str, Array], *, fresh: bool = True) -> dict[str, Array]:
        fed = {own: feeds[name] for name, own in self._fed.items()}
        made = self._runnable.run(fed, fresh=fresh)
        return {name: made[own] for name, own in self._given.items()}

    def products(self, feeds: Mapping[str, Array], cotangents: Mapping[str, Array]) -> Mapping[str, Array]:
        """As the model, by the other's names."""
        fed = {own: feeds[name] for name, own in self._fed.items()}
        made = self._runnable.products(fed, {self._given[name]: array for name, array in cotangents.items()})
        return {name: made[own] for name, own in self._fed.items() if own in made}

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        raise NotImplementedError("`run` hands on to the model, which checks and converts")
