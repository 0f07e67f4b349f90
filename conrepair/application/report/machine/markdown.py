"""summary.md: what a run came to, as a comment of a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conrepair.application.report.causes import Cause, causes_of
from conrepair.application.report.page.overview import overview
from conrepair.application.report.result import AuditResult
from conrepair.application.report.told import (
    FEW,
    Finding,
    Outcome,
    Told,
    held_notes,
    output_table,
    target_rows,
    told_of,
)
from conrepair.application.report.verdict_table import markdown_table
from conrepair.ground.runtime.words import counted, printable, shortened

_ROOM = 60_000  # of the 65,536 that GitHub takes of a comment; what stands around tables needs far less than the rest
_NAME, _WORDS, _COMMAND, _TARGETS = 80, 300, 1000, 8
_MARKS = {"right": "✅", "warning": "⚠️", "wrong": "❌", "unknown": "❔"}
_ORDER = (Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.PASSED)
_ACTED_ON = re.compile(r"[^\w\s.,;/=%()'+-]|_|(?<=www)\.", re.IGNORECASE)
_LINKS = re.compile("&#64;|&#35;")
_HEAD = ("model", "run by", "verdict", "predictions that differ", "relative error", "rounding error", "ms")
_FIGURES = ("{answers}", "{error}", "{floor}", "{milliseconds:.3g}")


def summary_markdown(result: AuditResult) -> str:
    """The verdict, a table of targets, the layers at fault, what to do next; always short enough for a comment.

    Args:
        result: Of any verb, or of an audit.
    """
    told, causes = overview(result), causes_of(result) if len(target_rows(result)) > 1 else ()
    targets = sorted(told_of(result), key=lambda target: _ORDER.index(target.outcome))
    parts = [f"### {_MARKS[told.state]} conrepair {result.kind}: {_text(told.word)}", "", _text(told.sentence), ""]
    parts += [part for note in held_notes(result)[0][:_TARGETS] for part in (_text(shortened(note, _WORDS)), "")]
    ends = [f"**next:** {_text(words)} {_code(command, _COMMAND)}".rstrip() + "\n" for words, command in told.next]
    if told.repairs:
        ends[:0] = [f"**repair:** {_text(item.words)}; before: {_text(item.before)}; now: {_text(item.after)}\n"
                    for item in told.repairs[:3]]  # fmt: skip
    titles, *outputs = output_table(result.rows, result) or [()]
    if 0 < len(outputs) <= FEW:
        cells = [[_text(shortened(cell, _NAME)) for cell in line] for line in outputs]
        ends[:0] = [*markdown_table(list(map(_text, titles)), cells), ""]
    versions = ", ".join(f"conrepair {text}" for name, text in result.versions.items() if name == "conrepair")
    ends.append(f"<sub>{_text(told.seen)} {result.seconds:.0f} s. {_text(versions)}</sub>\n")
    room = _ROOM - sum(map(len, [*parts, *ends]))
    head, rule, *rows = markdown_table(_HEAD, list(map(_cells, targets)))
    table, left = _fitting(rows, room // 2)
    lines = [_line(target, target.judgement) for target in targets if target.outcome is Outcome.ERROR]
    unseen, hidden = _fitting(lines, room // 8)
    lines = list(map(_of_cause, causes))
    lines = lines or [_line(target, finding) for target in targets for finding in target.accused]
    faults, more = _fitting(lines, room // 2 - room // 8)
    parts += [head, rule, *table, ""] if table else []
    parts += [f"and {left} more models, in result.json\n"] if left else []
    parts += [f"**{'What is wrong, by cause' if causes else 'Faulty'}:**", "", *faults, ""] if faults else []
    parts += [f"and {more} more {'causes' if causes else 'faults'}, in result.json\n"] if more else []
    parts += ["**Couldn't be checked:**", "", *unseen, ""] if unseen else []
    parts += [f"and {hidden} more, in result.json\n"] if hidden else []
    return "\n".join([*parts, *ends])


def _fitting(lines: Sequence[str], room: int) -> tuple[list[str], int]:
    """The first lines that have room, and how many haven't."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept, len(lines) - len(kept)


def _cells(target: Told) -> list[str]:
    word = f"{target.word}, repaired" if target.row.repaired.is_right else target.word
    cells = [_code(target.name, _NAME), _code(target.row.ran_by, _NAME), _text(word)]
    return [*cells, *map(target.figures.told, _FIGURES)]


def _line(target: Told, finding: Finding) -> str:
    more = f" and {len(finding.layers) - 1} more" if len(finding.layers) > 1 else ""
    where = f" at {_code(finding.layers[0], _NAME)}{more}" if finding.layers else ""
    return f"- {_code(target.name, _NAME)}: **{finding.kind}**{where}: {_text(finding.words)}"


def _of_cause(cause: Cause) -> str:
    """A cause with its targets, and the files that a repair wrote, in the run's folder."""
    step = f"{_code(cause.step, _NAME)}: " if cause.step else ""
    lines = [f"- **{cause.counted}**: {step}{_text(cause.words)} ({cause.kind})"]
    for target in cause.targets[:_TARGETS]:
        files = ", ".join(_code(name, _NAME) for name in target.files)
        ran = ", ".join(_code(name, _NAME) for name in target.backends)
        left = ", not repaired" if cause.repaired and not target.repaired else ""
        at = f" at {_code(target.where, 2 * _NAME)}" if target.where else ""
        lines.append(f"  - {_code(target.name, _NAME)} on {ran}{at}{left}{f': {files}' if files else ''}")
    more = len(cause.targets) - _TARGETS
    lines += [f"  - and {counted(more, 'more target')}"] if more > 0 else []
    lines += [f"  - next: {_text(cause.advice)}"] if cause.advice else []
    return "\n".join(lines)


def _code(text: str, most: int) -> str:
    """A name or a command: within `<code>` nobody is mentioned and nothing linked."""
    return f"<code>{_escaped(shortened(text, most))}</code>" if text else ""


def _text(text: str) -> str:
    """A sentence, in which names may stand: nobody is mentioned (@) in it, and no issue linked (#)."""
    return _LINKS.sub("\\g<0>\u200b", _escaped(shortened(text, _WORDS)))


def _escaped(text: str) -> str:
    return _ACTED_ON.sub(lambda found: f"&#{ord(found[0])};" if found[0].isascii() else found[0], printable(text))
