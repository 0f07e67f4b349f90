"""Find the chain of converters from one format to another."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conrepair.formats.converters.base import Converter
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.data.following import reached
from conrepair.ground.runtime.errors import ConfigError, ConrepairError, ConversionError
from conrepair.ground.runtime.words import shortened

_REASON = 400


@dataclass(frozen=True)
class Route:
    """Converters to apply one after the other."""

    steps: tuple[Converter, ...]

    @property
    def name(self) -> str:
        """The converters' names, joined."""
        return "+".join(step.name for step in self.steps)

    def convert(
        self, model: Model, folder: Path, options: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> Model:
        """Convert a model step by step.

        Args:
            model: Of the first one's format.
            folder: Exists, and receives a folder of each step, named by its place.
            options: By converter.

        Returns:
            What the last one wrote.

        Raises:
            ConrepairError: if one doesn't take what it's given.
        """
        for place, step in enumerate(self.steps):
            own = folder / str(place)
            own.mkdir()
            if refusal := step.accepts(model):
                raise ConversionError(refusal)
            try:
                path = own / step.convert(model, own, step.complete(options.get(step.name, {})))
            except ConrepairError:
                raise
            # Converters raise whatever their assumptions break into.
            except Exception as error:
                reason = f"{type(error).__name__}: {shortened(' '.join(str(error).split()), _REASON)}"
                raise ConversionError(f"{step.name} doesn't take the model: {reason}") from error
            # ONNX files hold no programs: what another format keeps as one is the converter's
            trusted = model.trust or model.framework == "onnx"
            model = Model(step.target, str(path), model_sha256(path), trust=trusted)
        return model


def find_route(
    source: str, target: str, converters: Iterable[Converter] | None = None, *, model: Model | None = None
) -> Route:
    """The route with the fewest converters, among those the best-known ones (smallest sum of preferences).

    Args:
        source: Framework of the model.
        target: Framework to reach; the same as `source` means a round trip.
        converters: Default: all; those that aren't automatic are left out.
        model: What is converted, so that converters that don't accept it aren't tried first.

    Raises:
        ConfigError: if there's none; says what can be reached.
    """
    edges = _automatic(converters)
    queue: list[tuple[int, int, tuple[str, ...], str, tuple[Converter, ...]]] = [(0, 0, (), source, ())]
    settled: set[str] = set()
    while queue:
        length, cost, names, here, steps = heapq.heappop(queue)
        if steps and here == target:
            return Route(steps)
        if steps and here in settled:
            continue
        if steps:
            settled.add(here)
        for edge in edges:
            if edge.source == here and (steps or model is None or edge.accepts(model) is None):
                entry = (length + 1, cost + edge.preference, (*names, edge.name), edge.target)
                heapq.heappush(queue, (*entry, (*steps, edge)))
    targets = ", ".join(sorted(reachable(source, edges))) or "nothing"
    raise ConfigError(f"there is no route from {source} to {target}; from {source} one reaches: {targets}")


def pinned_route(names: Sequence[str], source: str, target: str | None = None) -> Route:
    """The route through the named converters.

    Raises:
        ConfigError: if one is unknown, or they don't fit together.
    """
    from conrepair.formats.converters.all_converters import converter  # each of which imports its own

    steps = tuple(converter(name) for name in names)
    here = source
    for step in steps:
        if step.source != here:
            raise ConfigError(f"converter {step.name} reads {step.source}, but is given {here}; check `via`")
        here = step.target
    if target is not None and here != target:
        raise ConfigError(f"the route {'+'.join(names)} ends at {here}, not at {target}")
    return Route(steps)


def reachable(source: str, converters: Iterable[Converter] | None = None) -> set[str]:
    """All formats that some route through automatic converters from `source` ends at."""
    edges = _automatic(converters)

    def ends(here: str) -> list[str]:
        return [edge.target for edge in edges if edge.source == here]

    return set(reached(ends(source), ends))


def _automatic(converters: Iterable[Converter] | None) -> list[Converter]:
    """Those that may be chosen without being asked for by name; of all by default."""
    from conrepair.formats.converters.all_converters import CONVERTERS

    return [edge for edge in (CONVERTERS.values() if converters is None else converters) if edge.automatic]
