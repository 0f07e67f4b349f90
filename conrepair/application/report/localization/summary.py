"""One screen: the verdict, the layers at fault, what to do next."""

from __future__ import annotations

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
from conrepair.diagnosis.localization.result import Coverage, Localization, LocatedFault
from conrepair.ground.runtime.words import counted, percent, printable, quoted, shortened

_LINES = 40
_MOST_FAULTS = 6
_NAME, _SENTENCE = 48, 400
_NAMES, _NOTES = 3, 3
_ALL = percent(1.0)
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
        yield Text("")
        told = f": {_sentence(rule.text)}{_came_in(rule.step)}"
        yield Text.assemble((f"the same fault in several layers: {rule.kind.value}", "bold"), told)
        yield _indented(Text(_layers(tuple(names.get(layer, layer) for layer in rule.layers))))
    if (more := len(result.rules) - _MOST_FAULTS) > 0:
        yield Text(f"\nand {counted(more, 'more fault')} of several layers", style="dim")
    alone = result.alone
    for rank, fault in enumerate(alone[:shown], 1):
        yield Text("")
        yield from _fault(rank, fault, about)
    more = len(alone) - shown
    if more > 0:
        yield Text(f"\nand {counted(more, 'more fault')}", style="dim")
    yield Text("")
    advice = step_advice(result) if result.faults or result.options.static else verdict_advice(result, about)
    if advice:
        yield Text.assemble(("next: ", "bold"), advice)
    yield from _remarks(result, folder, result.samples if about is None else about.samples)


def _fault(rank: int, fault: LocatedFault, about: About | None) -> Iterator[Text | Padding]:
    names = names_of_fault(fault)
    layers = _layers(fault.places)
    origin = _layers(fault.source_layers or (fault.source_tensor,))
    pair = layers if layers == origin else f"{layers}, in the original {origin}"
    if names:
        pair = f"{origin}, in the converted model {layers}"
    yield Text.assemble((f"{rank}. {fault.kind.value}", "bold"), " at ", (pair, "bold red"), _came_in(fault.step))
    own, whole = percent(fault.introduced_error), percent(fault.full_run_error)
    inherited = f"{whole} with the errors of the layers before it" if own != whole and fault.full_run_error else ""
    sure = f"confidence {told}" if (told := percent(fault.confidence)) != _ALL else ""
    if figures := [words for words in (fault.measured, inherited, sure) if words]:
        yield _indented(Text("; ".join(figures)))
    if fault.evidence:
        yield _indented(Text(_sentence(fault.evidence[0], names)))
    yield _indented(Text.assemble(("next: ", "bold"), fault_advice(fault, about)))


def _came_in(step: str) -> str:
    """Which step of a conversion brought a fault in, where that's known."""
    return f" (brought in by {shortened(step, _NAME)})" if step else ""


def _remarks(result: Localization, folder: Path | None, whole: int) -> Iterator[Text]:
    sides = (("original", result.unmatched_source), ("converted model", result.unmatched_target))
    unmatched = [f"{len(names)} of the {side}" for side, names in sides if names]
    where = "in result.json, which -o FOLDER writes" if folder is None else "in result.json"
    if unmatched:
        yield Text(f"Layers that the other model doesn't have: {', '.join(unmatched)} (listed {where})", style="dim")
    for fault in result.latent[:_NAMES]:
        words = _sentence(fault.words, names_of_fault(fault))
        yield Text(f"Not triggered by these inputs: at {_layers(fault.places)}: {words}")
    if len(result.latent) > _NAMES:
        yield Text(f"and {len(result.latent) - _NAMES} more that these inputs don't trigger, {where}", style="dim")
    if result.coverage is not None:
        yield Text(_coverage(result.coverage, len(result.layers)), style="dim")
    for note in result.notes[:_NOTES]:
        yield Text.assemble(("note: ", "dim"), _sentence(note))
    if len(result.notes) > _NOTES:
        yield Text(f"and {len(result.notes) - _NOTES} more notes {where}", style="dim")
    if result.options.static:
        yield Text("The files were compared; neither model was run.")
        return
    took = f" {sum(result.seconds.values()):.1f} s." if result.seconds else ""
    files = "" if folder is None else f" Files: {printable(str(folder))}"
    yield Text(f"{_samples(result, whole)}{took}{files}")


def _samples(result: Localization, whole: int) -> str:
    """On how many samples layers were compared, and why on no more: whoever drew 32 wonders."""
    pairs, samples = len(result.layers), result.samples
    if not pairs:
        return f"The outputs were compared on {counted(whole, 'sample')}."
    tensors = "The layers" if result.coverage is not None else counted(pairs, "tensor")
    told, enough = f"{tensors} were compared on", "which tell a fault from rounding"
    if whole > samples:
        return f"{told} {samples} of {whole} samples, {enough}; the outputs on all {whole}."
    told = f"{told} {counted(samples, 'sample')}"
    return f"{told}." if whole else f"{told}, {enough}, so no outputs of more were computed."


def _coverage(coverage: Coverage, pairs: int) -> str:
    """How much was compared, and in how many segments, in one line."""
    pieces = f" in {counted(pairs, 'segment')}" if pairs < coverage.nodes else ""
    told = f"Compared: {_of_all(coverage.nodes, coverage.all_nodes)} operators{pieces}"
    if coverage.all_parameters:
        part = percent(coverage.parameters / coverage.all_parameters)
        told += " and all weights" if part == _ALL else f" and {part} of the weights, by their effect on results"
    if coverage.explained is not None and coverage.explained >= _LEAST_SHARE:
        share = percent(coverage.explained)
        whole = "the whole" if share == _ALL else f"{share} of the"
        told += f". The faulty layers account for {whole} error of the outputs"
    return f"{told}."


def _of_all(part: int, of: int) -> str:
    return f"all {of}" if part == of else f"{part} of {of}"


def _layers(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(f"`{shortened(name, _NAME)}`" for name in names[:_NAMES]) + more


def _sentence(text: str, names: Mapping[str, str] | None = None) -> str:
    """As told: names are shortened, and only what would fill the screen is cut, in its middle."""
    return shortened(quoted(text, names=names), _SENTENCE)


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 3), expand=False)
