"""One screen: the verdict, the layers at fault, what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from conrepair.application.report.localization.advice import (
    About,
    fault_advice,
    names_of,
    names_of_fault,
    step_advice,
    verdict_advice,
)
from conrepair.application.report.summary import STYLES
from conrepair.application.report.told import state_of
from conrepair.diagnosis.localization.ranking.suspiciousness import Suspiciousness
from conrepair.diagnosis.localization.result import Coverage, Localization, LocatedFault
from conrepair.ground.runtime.words import number, printable, quoted, shortened

_LINES = 40
_MOST_FAULTS = 6
_NAME, _SENTENCE = 48, 400
_NAMES, _NOTES = 3, 3
_LEAST_SHARE = 0.005  # of the outputs' error: less is printed as 0 %, which says nothing


def print_localization(
    result: Localization, console: Console, *, about: About | None = None, folder: Path | None = None
) -> None:
    """Show what was found; what takes more than a screen is in the files.

    Args:
        result: What was found.
        console: Where to.
        about: For the names of both files.
        folder: Where the files are.
    """
    for shown in range(min(_MOST_FAULTS, len(result.alone)), -1, -1):
        screen = Group(*_parts(result, shown, about, folder))
        if len(console.render_lines(screen)) <= _LINES or shown <= 1:
            console.print(screen, soft_wrap=False)
            return


def _parts(result: Localization, shown: int, about: About | None, folder: Path | None) -> Iterator[Text | Padding]:
    style, names = STYLES[state_of(result.verdict)], names_of(result)
    yield Text.assemble((result.verdict.value, style), ": ", _sentence(result.reason, names))
    for rule in result.rules[:_MOST_FAULTS]:
        came = f" (came in with {shortened(rule.step, _NAME)})" if rule.step else ""
        yield Text("")
        yield Text.assemble((f"one rule: {rule.kind.value}", "bold"), f": {_sentence(rule.text)}{came}")
        yield _indented(Text(_layers(tuple(names.get(layer, layer) for layer in rule.layers))))
    if (more := len(result.rules) - _MOST_FAULTS) > 0:
        yield Text(f"\nand {more} more {_plural(more, 'rule')}", style="dim")
    alone = result.alone
    for rank, fault in enumerate(alone[:shown], 1):
        yield Text("")
        yield from _fault(rank, fault, about)
    more = len(alone) - shown
    if more > 0:
        yield Text(f"\nand {more} more {_plural(more, 'fault')}", style="dim")
    yield Text("")
    advice = step_advice(result) if result.faults or result.options.static else verdict_advice(result, about)
    if advice:
        yield Text.assemble(("next: ", "bold"), advice)
    yield from _remarks(result, folder, whole=about is None or about.whole)


def _fault(rank: int, fault: LocatedFault, about: About | None) -> Iterator[Text | Padding]:
    names = names_of_fault(fault)
    layers = _layers(fault.places)
    origin = _layers(fault.source_layers or (fault.source_tensor,))
    pair = layers if layers == origin else f"{layers}, in the source {origin}"
    if names:
        pair = f"{origin}, in the target {layers}"
    came = f" (came in with {shortened(fault.step, _NAME)})" if fault.step else ""
    yield Text.assemble((f"{rank}. {fault.kind.value}", "bold"), " at ", (pair, "bold red"), came)
    whole = f"{number(fault.full_run_error)} in the full run" if 0 < fault.full_run_error < math.inf else ""
    figures = [fault.measured, whole, f"confidence {fault.confidence:.2f}"]
    yield _indented(Text("; ".join(words for words in figures if words)))
    if fault.evidence:
        yield _indented(Text(_sentence(fault.evidence[0], names)))
    yield _indented(Text.assemble(("next: ", "bold"), fault_advice(fault, about)))


def _remarks(result: Localization, folder: Path | None, *, whole: bool) -> Iterator[Text]:
    sides = (("source", result.unmatched_source), ("target", result.unmatched_target))
    unmatched = [f"{len(names)} of the {side}" for side, names in sides if names]
    where = "in result.json, which -o FOLDER writes" if folder is None else "in result.json"
    if unmatched:
        yield Text(f"layers without a counterpart: {', '.join(unmatched)} (listed {where})", style="dim")
    for fault in result.latent[:_NAMES]:
        words = _sentence(fault.words, names_of_fault(fault))
        yield Text(f"no input shows it: at {_layers(fault.places)}: {words}")
    if len(result.latent) > _NAMES:
        yield Text(f"and {len(result.latent) - _NAMES} more that no input shows, {where}", style="dim")
    if result.coverage is not None:
        yield Text(_coverage(result.coverage, len(result.layers)), style="dim")
    if result.suspiciousness is not None:
        yield Text.assemble(("suspicious: ", "dim"), _sentence(_suspects(result.suspiciousness)))
    for note in result.notes[:_NOTES]:
        yield Text.assemble(("note: ", "dim"), _sentence(note))
    if len(result.notes) > _NOTES:
        yield Text(f"and {len(result.notes) - _NOTES} more notes {where}", style="dim")
    if result.options.static:
        yield Text("compared by the files alone: nothing was run")
        return
    pairs, inputs = len(result.layers), result.samples
    took = f"in {sum(result.seconds.values()):.1f} s" if result.seconds else "compared"
    files = "" if folder is None else f". Files: {printable(str(folder))}"
    cuts = "" if result.coverage is not None else f"{pairs} {_plural(pairs, 'tensor')} on "
    # Fewer than were drawn: whoever drew 32 wonders.
    others = "outputs are compared on all inputs" if whole else "they say enough, so no more inputs were run"
    yield Text(f"{cuts}{inputs} {_plural(inputs, 'input')} {took} (layers; {others}){files}")


def _coverage(coverage: Coverage, pairs: int) -> str:
    """How much was compared, and in how many pieces, in one line."""
    pieces = f" in {pairs} {_plural(pairs, 'piece')}" if pairs < coverage.nodes else ""
    words = [f"compared: {coverage.nodes} of {coverage.all_nodes} operators{pieces}"]
    if coverage.all_parameters:
        words.append(f"{coverage.parameters / coverage.all_parameters:.0%} of the weights by what they do to results")
    if coverage.explained is not None and coverage.explained >= _LEAST_SHARE:
        words.append(f"{coverage.explained:.0%} of the outputs' error comes in at the layers at fault")
    return ", ".join(words)


def _suspects(ranking: Suspiciousness) -> str:
    """The layers that differ most where the models disagree."""
    if ranking.shortage is not None:
        return ranking.shortage
    leading = [f"`{shortened(layer.target_layer, _NAME)}` ({layer.share:.0%})" for layer in ranking.layers[:_NAMES]]
    inputs = f"{ranking.dissimilar} of {ranking.similar + ranking.dissimilar} inputs"
    return f"where answers differ ({inputs}), the most by {', '.join(leading)}; a ranking, no verdict"


def _layers(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(f"`{shortened(name, _NAME)}`" for name in names[:_NAMES]) + more


def _sentence(text: str, names: Mapping[str, str] | None = None) -> str:
    """As told: names are shortened, and only what would fill the screen is cut, in its middle."""
    return shortened(quoted(text, names=names), _SENTENCE)


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 3), expand=False)


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
