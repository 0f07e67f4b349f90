"""One screen: what was wrong, what was changed, what that bought, what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from conrepair.application.report.figures import off_by
from conrepair.application.report.localization.advice import names_of, names_of_fault
from conrepair.application.report.repair.files import made_anew
from conrepair.application.report.result import AuditResult, Problem
from conrepair.application.report.saved import DOCUMENT
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.repairs.conversion.result import Mending, Stop
from conrepair.diagnosis.repairs.outcomes import CONVERTED, PATCH, RECIPE, Advice, Agreement, Delivery
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.identity import model_files
from conrepair.ground.runtime.words import counted, percent, quoted, shortened

# What was done about a conversion that failed, in words.

NOT_COMPARED = "converted, not compared"
_NODES, _ERROR, _NAME, _REASON = 4, 160, 60, 300


def conversion_lines(done: Mending) -> list[str]:
    """What stopped the conversion, and what repaired it.

    Args:
        done: Of a conversion.
    """
    lines = [_stop(stop) for stop in done.stops]
    found = done.mended
    if found is not None:
        lines.append(f"repaired: {found.words}: {found.outcome}")
        return lines
    if done.hindered:
        return [*lines, f"not repaired: other ways can't be tried: {done.hindered}"]
    ways = f"{len(done.tried)} other ways were tried" if done.tried else "there is no other way to try"
    lines.append(f"not repaired: {ways}" + ("" if done.in_time else "; the time was up before all were tried"))
    unproven = [item.outcome for item in done.tried if item.outcome.startswith(NOT_COMPARED)]
    if unproven:
        reason = shortened(unproven[0].removeprefix(f"{NOT_COMPARED}: "), _REASON)
        lines.append(f"{len(unproven)} of them convert, but their outputs couldn't be compared: {reason}")
    return lines


def _stop(stop: Stop) -> str:
    error = shortened(" ".join(stop.error.split()), _ERROR)
    if not stop.operators:
        return f"{stop.converter} fails: {error}" + (f" ({stop.note})" if stop.note else "")
    pairs = [
        f"{operator} `{shortened(name, _NAME)}`" for operator, name in zip(stop.operators, stop.nodes, strict=True)
    ]
    listing = ", ".join(pairs[:_NODES]) + (f" and {len(pairs) - _NODES} more" if len(pairs) > _NODES else "")
    least = "" if stop.exact else "at most "
    size = f"{least}{len(pairs)} of {stop.of} nodes, found by {stop.tries} tries in {stop.seconds:.1f} s"
    return f"{stop.converter} stops at {listing} ({size}): {error}"


_SEVERAL = 2
_MOST, _WIDTH, _REASONS = 8, 300, 3


def advice_line(advice: Sequence[Advice]) -> str:
    """What is known of other ways to convert, in one line; "" where there are none.

    Args:
        advice: In the order in which they were tried.
    """
    if not advice:
        return ""
    best = next((item for item in advice if item.avoids), None)
    if best is not None:
        return f"{best.words}: {best.outcome} ({best.conversion})"
    tried = sum(item.tried for item in advice)
    if tried:
        first = f"{'the first: ' * (tried > 1)}{advice[0].words}: {advice[0].outcome}"
        ways = f"{tried} other ways to convert were tried, none avoids this" if tried > 1 else "another way was tried"
        return f"{ways}; {first}"
    return f"{advice[0].words}: {advice[0].outcome}"


def repair_line(result: RepairResult) -> str:
    """What became of a repair, in one line.

    Args:
        result: Of a target.
    """
    found, left = result.found, len(result.after.faults)
    names = names_of(result.before)
    edits = "; ".join(quoted(edit, names=names) for edit in result.edits[:_REASONS])
    more = f"; and {len(result.edits) - _REASONS} more edits" if len(result.edits) > _REASONS else ""
    why = "".join(f" ({reason})" for reason in why_left(result)[:1] if not edits)
    line = f"{_outcome(result)[0]}: {_faults_found(found)}, {left} left{f': {edits}{more}' if edits else why}"
    return f"{line}; {_delivered(result.delivery)}" if result.delivery is not None else line


def _delivered(delivery: Delivery) -> str:
    """In which format a repair is, and why not in the target's own."""
    return f"delivered as ONNX ({delivery.route}), as the converted file can't be edited: {_reason(delivery.reason)}"


def _faults_found(count: int) -> str:
    return f"{count} {'fault' if count == 1 else 'faults'} found"


def verified_on(result: RepairResult, run: AuditResult) -> str:
    """The samples that a repair was verified on, and whether its search saw them.

    Args:
        result: Of a target.
        run: That it's of.
    """
    count, seen = counted(result.unseen_after.samples, "sample"), max(result.before.samples, result.after.samples)
    whole = max(map(len, run.samples.values()), default=0)
    if 0 < whole <= seen:
        return f"{count}, which the search saw, too: there are no more"
    drawn = "random " if run.seeds else ""
    return f"{count.replace(' ', f' other {drawn}', 1)}, which the search didn't see"


def print_repair(
    result: RepairResult,
    console: Console,
    folder: Path | None,
    advice: Sequence[Advice] = (),
    *,
    on: str = "unseen samples",
) -> None:
    """Show what became of a repair.

    Args:
        result: Of a target.
        console: Where to.
        folder: Where the files are; None where none were written.
        advice: Other ways to convert.
        on: What it was verified on, as `verified_on` has it.
    """
    for line in _lines(result, folder, advice, on) if result.found else _untouched(result.before):
        console.print(line)


def _untouched(found: Localization) -> Iterator[Text]:
    yield _led("nothing to repair", f": {quoted(found.reason)}", "bold green")
    for fault in found.latent[:_MOST]:
        words = quoted(fault.words, names=names_of_fault(fault))
        yield Text(f"not triggered by these inputs (--latent fixes it): {words}")


def _lines(result: RepairResult, folder: Path | None, advice: Sequence[Advice], on: str) -> Iterator[Text]:
    names, (word, style) = names_of(result.before), _outcome(result)
    counts = f": {_faults_found(result.found)}, {len(result.after.faults)} left; edits tried: {result.tried}"
    yield _led(word, counts, style)
    yield from _faults("found: ", result.before)
    front = "a fault beside it, repaired by: " if result.before.faults else ""
    for words in result.beside[:_MOST]:
        yield _led("found: ", f"{front}{quoted(words, names=names)}")
    for edit in result.edits[:_MOST]:
        yield Text(f"  edit: {quoted(edit, names=names)}")
    if len(result.edits) > _MOST:
        yield Text(f"  and {len(result.edits) - _MOST} more edits", style="dim")
    if line := _of_one_edit(result):
        yield Text(f"  {line}")
    if (delivery := result.delivery) is not None:
        yield _led(_delivered(delivery), f"; {CONVERTED} is it without the repair, and {PATCH} applies to that")
    if result.recipe is not None:
        yield _of_recipe(result)
    if result.not_baked is not None:
        yield _led("the preprocessing couldn't be built into the model: ", _reason(result.not_baked), "bold yellow")
    before, now = agreement_words(result.unseen_before), agreement_words(result.unseen_after)
    yield Text(f"Verified on {on}. Before: {before}; now: {now}.")
    if (stored := result.storage) is not None:
        grown = percent(abs(stored.bytes / stored.bytes_before - 1))
        than = f"{grown} {'more' if stored.bytes > stored.bytes_before else 'fewer'} than before"
        size = f"The file has {stored.bytes:,} bytes, {than if stored.bytes != stored.bytes_before else 'as before'}."
        quantized = f" {stored.quantized} of {stored.quantized_before} quantized weights are still quantized."
        yield Text(size + (quantized if stored.quantized_before else ""))
    yield from _faults("left: ", result.after)
    for line in why_left(result):
        yield Text(f"  {line}")
    if result.interrupted:
        yield Text("interrupted; the same command goes on with the search", style="yellow")
    elif not result.in_time:
        yield Text("the time was up before the search ended: give it more (--seconds)", style="yellow")
    if line := advice_line(advice):
        yield _led("advice: ", line)
    if folder is not None:
        yield _led("written: ", f"{folder}: {_files(result, advice)}")


def _led(first: str, words: str, style: str = "bold") -> Text:
    return Text.assemble((first, style), words)


def print_untouched(found: Localization, problem: Problem | None, console: Console) -> None:
    """Show why a target stays as it came: nothing is wrong, or nothing of what is could be tried.

    Args:
        found: Of the target.
        problem: What kept it from being repaired; None where there was nothing to repair.
        console: Where to.
    """
    if problem is not None:
        console.print(_led("not repaired", f": {problem.message}", "bold red"))
        return
    word = "nothing to repair" if found.is_right else found.verdict.value
    console.print(f"{word}: {found.reason}")
    for note in found.notes:
        console.print(f"note: {note}")


def _of_one_edit(result: RepairResult) -> str:
    """That several places had one cause, where one edit proves it; "" elsewhere.

    What was found at each place is then no second thing to fix: kernels that are transposed, all behind one layer,
    are right where what they read is.
    """
    if not result.mended or len(result.edits) != 1 or result.places < _SEVERAL or result.recipe is not None:
        return ""
    return f"this one edit makes all {result.places} layers right; nothing else needs to be fixed"


def _of_recipe(result: RepairResult) -> Text:
    """That inputs are to be preprocessed otherwise, and whether the file is changed besides."""
    words = f"preprocess its inputs by {RECIPE} (--target-recipe {RECIPE})"
    if result.model is not None:
        return Text(f"the repaired model: {words}")
    return _led("no model was written", f": the converted file stays as it is; {words}", "bold yellow")


def _files(result: RepairResult, advice: Sequence[Advice]) -> str:
    """What a repair's folder holds."""
    names = [] if result.model is None else [file.name for file in model_files(Path(result.model.path))]
    if result.patch is not None:
        names.append(PATCH)
    if result.recipe is not None:
        names.append(RECIPE)
    anew = None if result.mended else made_anew(advice)
    if anew is not None:
        names.append(f"{anew} (converted again; no layer of it is faulty)")
    return ", ".join([*names, DOCUMENT])


def why_left(result: RepairResult) -> list[str]:
    """What is known of why a target isn't repaired, in a few lines; none where it is.

    Args:
        result: Of a target.
    """
    if result.mended:
        return []
    if result.undone is not None:
        return [result.undone]
    if result.after.is_right:
        return [
            f"no layer is faulty on {result.after.samples} samples, but on {result.unseen_after.samples} others "
            f"outputs are {off_by(result.unseen_after.error)}: try more (--samples) or your own (--data)"
        ]
    if not result.after.is_right and not result.after.faults:
        return [f"{result.after.verdict.value}: {quoted(result.after.reason)}"]
    refused = [f"the file format doesn't allow it: {_reason(reason)}" for reason in result.refused[:_REASONS]]
    refused += [f"an edit failed: {_reason(reason)}" for reason in result.failed[:_REASONS]]
    if refused or result.interrupted or not result.in_time:
        return refused
    return ["none of the edits tried makes it right" if result.tried else "no edit is known for this fault"]


def _outcome(result: RepairResult) -> tuple[str, str]:
    """In a word, and its style."""
    if result.mended and result.model is None and result.recipe is not None:
        return "fixed by another preprocessing", "bold yellow"
    if result.mended:
        return "repaired", "bold green"
    return ("partly repaired", "bold yellow") if result.edits else ("not repaired", "bold red")


def _faults(word: str, found: Localization) -> Iterator[Text]:
    """Rules, then the faults that are alone; as many as fit a screen."""
    for rule in found.rules[:_MOST]:
        yield _led(word, f"{rule.kind.value}: {quoted(rule.text)}")
    for fault in found.alone[: max(_MOST - len(found.rules), 1)]:
        layer = (fault.target_layers or fault.source_layers or ("?",))[0]
        yield _led(word, quoted(f"{fault.kind.value} at {layer}: {fault.words}", names=names_of_fault(fault)))


def _reason(text: str) -> str:
    """What a library says, as much as is read."""
    return shortened(quoted(text), _WIDTH)


def agreement_words(agreement: Agreement) -> str:
    """How far two models agree on samples that took no part in a repair, in words.

    Args:
        agreement: Of the original and the converted model.
    """
    if not agreement.samples:
        return "none could be compared"
    told = [f"outputs {off_by(agreement.error)}" if agreement.error else "outputs the same"]
    if (differing := agreement.top1_differing) is not None:
        told[:0] = [f"{differing} of {agreement.samples} predictions differ" if differing else "predictions the same"]
    if agreement.right is not None:
        told.append(f"{agreement.right} of {agreement.labelled} predictions right")
    return ", ".join(told)
