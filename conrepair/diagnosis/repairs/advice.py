"""What in a conversion would avoid a fault: other options, another converter, another route."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

from conrepair.diagnosis.repairs.conversion.remedies import (
    Remedy,
    RouteStep,
    all_routes,
    detours,
    exports,
    other_options,
)
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.models.model import Model


def suggestions(steps: Sequence[RouteStep], guilty: Collection[str], source: Model) -> Iterator[Remedy]:
    """Other ways for a target whose route is known.

    Args:
        steps: The route.
        guilty: Converters that brought a fault in, by name; the last one where none is known.
        source: What the route starts from.
    """
    names = [step.converter.name for step in steps]
    places = [place for place, name in enumerate(names) if name in guilty] or [len(steps) - 1]
    for place in places:
        yield from other_options(steps, place)
    for place in places:
        yield from itertools.chain(detours(steps, place, source), exports(steps, place))


def suggestions_for_files(source: Model, target: str, producer: str) -> Iterator[Remedy]:
    """Ways to make a target anew whose route isn't known.

    Args:
        source: The model that is right.
        target: Format of the one at fault.
        producer: The tool that wrote it, as its file says; "" where it doesn't.
    """
    said = producer.lower()
    for names in all_routes(source, target):
        tools = [CONVERTERS[name].distributions[0] for name in names]
        last = tools[-1].lower()
        wrote = bool(said) and last in {said.split()[0], *said.split()}
        words = f"converted anew by {' > '.join(names)}" + (", the tool that the file names" if wrote else "")
        yield Remedy(tuple(RouteStep(CONVERTERS[name], {}) for name in names), words, 0)
