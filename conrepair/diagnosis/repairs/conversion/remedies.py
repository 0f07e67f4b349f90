"""Other ways to convert where a converter fails or makes a fault, those that change least first."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.base import Converter
from conrepair.formats.converters.routes import find_route
from conrepair.formats.models.model import Description, Model
from conrepair.formats.onnx.passes.rewrites.all_rewrites import REWRITES
from conrepair.ground.runtime.errors import ConfigError

_NORMALISE = "onnx-normalise"


@dataclass(frozen=True)
class RouteStep:
    """A converter with what it's told beyond its defaults."""

    converter: Converter
    options: Mapping[str, Any]

    @property
    def label(self) -> str:
        """As rows name it."""
        return self.converter.name + "".join(f",{name}={value}" for name, value in sorted(self.options.items()))


@dataclass(frozen=True)
class Remedy:
    """A route to take instead.

    Attributes:
        steps: All of it, from the source on.
        words: What is done otherwise.
        begin: Place of the first step that is another one.
    """

    steps: tuple[RouteStep, ...]
    words: str
    begin: int

    @property
    def route(self) -> str:
        """As rows name it."""
        return "+".join(step.label for step in self.steps)


def rewritings(steps: Sequence[RouteStep], place: int, operators: Iterable[str]) -> Iterator[Remedy]:
    """What keeps the converter that fails: its other options, and other operators in what it reads.

    Args:
        steps: The route.
        place: Of the step that fails.
        operators: At which it stops, where that's known.
    """
    step = steps[place]
    yield from other_options(steps, place)
    if step.converter.source != "onnx":
        return
    guilty = ",".join(sorted(set(operators)))
    known = step.converter.options.get("opset")
    opsets = () if known is not None else (17, 13, 11)
    changes: list[dict[str, Any]] = [{}, *({"rewrite": name} for name in REWRITES), {"explicit_pads": True}]
    changes += [{"expand": guilty}] if guilty else []
    changes += [{"opset": opset} for opset in opsets]
    for change in changes:
        yield _behind_rewrites(steps, place, change)


def all_rewritings(steps: Sequence[RouteStep], place: int) -> Iterator[Remedy]:
    """All remedies at once, for failures that need several changes."""
    if steps[place].converter.source == "onnx":
        changes = {"rewrite": ",".join(REWRITES), "explicit_pads": True}
        yield _behind_rewrites(steps, place, changes)


def other_options(steps: Sequence[RouteStep], place: int) -> Iterator[Remedy]:
    """Other values of a step's options that make the same network."""
    step = steps[place]
    for name, option in step.converter.options.items():
        for value in option.alternatives:
            if value != step.options.get(name, option.default):
                other = replace(step, options=_with(step, name, value))
                yield _instead(steps, place, other, f"{step.converter.name} with {name} {value}")


def exports(steps: Sequence[RouteStep], place: int) -> Iterator[Remedy]:
    """Other options of the steps before the one that fails, the nearest first."""
    for before in reversed(range(place)):
        yield from other_options(steps, before)


def detours(steps: Sequence[RouteStep], place: int, source: Model) -> Iterator[Remedy]:
    """Another converter for the step that fails, another one for a step before it, another route altogether.

    Those of tools in environments of their own, which would have to be made first, are left out. What is used only
    where it's named comes last: the result is compared with the source like every other.
    """
    own = tuple(step.converter.name for step in steps)
    for at in (place, *reversed(range(place))):
        for other in _same_edge(steps[at].converter):
            if at > 0 or other.accepts(source) is None:
                yield _instead(steps, at, RouteStep(other, {}), f"{other.name} for {steps[at].converter.name}")
    here, there = steps[0].converter.source, steps[-1].converter.target
    for names in _routes(here, there, source, steps[place].converter):
        if names != own:
            changed = tuple(RouteStep(CONVERTERS[name], {}) for name in names)
            yield Remedy(changed, f"another route: {' > '.join(names)}", 0)


def all_routes(source: Model, target: str) -> Iterator[tuple[str, ...]]:
    """Routes from a model to another format, by the names of their converters, the best-known first."""
    if source.framework != target:
        yield from _routes(source.framework, target, source)


def _routes(here: str, there: str, source: Model, failing: Converter | None = None) -> Iterator[tuple[str, ...]]:
    """Routes without the converter that fails, by the names of their converters, each once.

    Each is without the first one of those before it; at last come those that are used only where they're named.
    """
    others = [edge for edge in CONVERTERS.values() if edge.source != edge.target]
    others = [edge for edge in others if failing is None or edge.name != failing.name]
    by_name = [replace(edge, automatic=True) for edge in others if edge.environment is None]
    seen = set[tuple[str, ...]]()
    for edges in (others, by_name):
        with contextlib.suppress(ConfigError):
            while True:
                route = find_route(here, there, edges, model=source)
                names = tuple(step.name for step in route.steps)
                if names not in seen:
                    seen.add(names)
                    yield names
                edges = [edge for edge in edges if edge.name != names[0]]


def _same_edge(step: Converter) -> list[Converter]:
    others = [
        other
        for other in CONVERTERS.values()
        if (other.source, other.target) == (step.source, step.target)
        and other.name != step.name
        and other.environment is None
        and other.source != other.target
    ]
    return sorted(others, key=lambda other: (not other.automatic, other.preference))


def _with(step: RouteStep, name: str, value: Any) -> dict[str, Any]:
    """The options with one of another value; defaults are left out, as rows leave them out."""
    return step.converter.changed({**step.options, name: value})


def _instead(steps: Sequence[RouteStep], place: int, step: RouteStep, words: str) -> Remedy:
    return Remedy((*steps[:place], step, *steps[place + 1 :]), words, place)


def _behind_rewrites(steps: Sequence[RouteStep], place: int, changes: Mapping[str, Any]) -> Remedy:
    """A normalisation of the graph before the converter; where there's one already, it does both."""
    converter = CONVERTERS[_NORMALISE]
    begin = place - 1 if place and steps[place - 1].converter is converter else place
    step = steps[begin] if begin < place else RouteStep(converter, {})
    for name, value in changes.items():
        known = step.options.get(name)
        if isinstance(value, str) and known:
            value = ",".join(dict.fromkeys([*known.split(","), *value.split(",")]))
        step = replace(step, options=_with(step, name, value))
    return Remedy((*steps[:begin], step, *steps[place:]), _said(step), begin)


def _said(normalise: RouteStep) -> str:
    """What a normalisation does, in words."""
    said = {
        "rewrite": "rewritten ({})",
        "expand": "written without {}",
        "opset": "lowered to opset {}",
        "explicit_pads": "given its paddings as numbers",
    }
    done = [
        words.format(str(normalise.options[name]).replace(",", ", "))
        for name, words in said.items()
        if name in normalise.options
    ]
    return f"the graph is first {' and '.join(done) or 'normalised'}"


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


def suggestions_for_files(source: Model, target: str, about: Description) -> Iterator[Remedy]:
    """Ways to make a target anew whose route isn't known, quantized as it is.

    Args:
        source: The model that is right.
        target: Format of the one at fault.
        about: What its file says.
    """
    said = about.producer.lower().split()
    for names in all_routes(source, target):
        converters = [CONVERTERS[name] for name in names]
        if (quantized := converters[-1].as_quantized(about)) is None:
            continue
        steps = tuple(RouteStep(one, quantized if one is converters[-1] else {}) for one in converters)
        wrote = converters[-1].distributions[0].lower() in said
        words = f"converted anew by {' > '.join(names)}" + (", the tool that the file names" if wrote else "")
        yield Remedy(steps, words + (", quantized as the file is" if quantized else ""), 0)
