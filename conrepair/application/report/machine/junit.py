"""junit.xml: a test case for each target and each place that it ran in."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from conrepair.application.report.result import AuditResult
from conrepair.application.report.told import Outcome, Told, told_of
from conrepair.ground.runtime.words import printable, shortened

_NAME, _MESSAGE, _LAYERS = 200, 300, 20
_TAGS = {Outcome.FAILED: "failure", Outcome.ERROR: "error", Outcome.SKIPPED: "skipped"}
_FIGURES = {
    "answers_differing": "{answers.part}",
    "answers": "{answers.of}",
    "relative_error": "{error:.6g}",
    "rounding_explains": "{floor:.6g}",
    "answered_rightly": "{accuracy.part}",
    "labelled": "{accuracy.of}",
    "median_seconds": "{times.median:.6g}",
}


def junit_xml(result: AuditResult) -> str:
    """As Jenkins, GitLab, Azure and GitHub's actions read it: a suite for each original model, called by its name.

    What would make the command end with 1 is a failure: faulty, undeployable, and undecided, as nothing is proven.

    Args:
        result: Of any verb, or of an audit.
    """
    targets = told_of(result)
    seconds = {"time": f"{result.seconds:.3f}"}
    root = ET.Element("testsuites", {"name": f"conrepair {result.kind}"} | _counts(targets) | seconds)
    for model in dict.fromkeys(target.source for target in targets):
        own = [target for target in targets if target.source == model]
        suite = ET.SubElement(root, "testsuite", {"name": shortened(model, _NAME)} | _counts(own))
        _properties(suite, [(f"version of {name}", version) for name, version in result.versions.items()])
        for target in own:
            _case(suite, target)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _counts(targets: list[Told]) -> dict[str, str]:
    counts = Counter(target.outcome for target in targets)
    return {
        "tests": str(len(targets)),
        "failures": str(counts[Outcome.FAILED]),
        "errors": str(counts[Outcome.ERROR]),
        "skipped": str(counts[Outcome.SKIPPED]),
    }


def _case(suite: ET.Element, target: Told) -> None:
    row = target.row
    case = ET.SubElement(
        suite,
        "testcase",
        classname=shortened(target.source, _NAME),
        name=shortened(f"{target.name} on {row.backend}", _NAME),
    )
    _properties(case, _measured(target))
    if target.outcome is Outcome.PASSED:
        return
    first = next(iter(target.findings), target.judgement)
    problem = ET.SubElement(
        case,
        _TAGS[target.outcome],
        type=first.kind,
        message=shortened(f"{target.word}{first.where}: {first.words}", _MESSAGE),
    )
    problem.text = "\n".join(map(_line, _details(target)))


def _details(target: Told) -> list[str]:
    """All that is known: the reason, each fault with its layers, what a tool said last."""
    lines = target.reason.splitlines()
    for finding in target.findings:
        known = f" (known: {finding.known})" if finding.known else ""
        lines.append(f"{finding.kind}{known}: {finding.words}")
        lines += [f"  at {layer}" for layer in finding.layers[:_LAYERS]]
        if len(finding.layers) > _LAYERS:
            lines.append(f"  and {len(finding.layers) - _LAYERS} more layers")
    if (problem := target.row.problem) is not None:
        lines += [*problem.explanation.splitlines(), *problem.last_words.splitlines()]
    return lines


def _line(text: str) -> str:
    return printable(text.rstrip())


def _measured(target: Told) -> list[tuple[str, str]]:
    """The verdict, and what was measured, as far as it was."""
    told = [("verdict", target.word), *([("repaired", "true")] if target.row.repaired.is_right else [])]
    figures = ((name, target.figures.told(words)) for name, words in _FIGURES.items())
    return told + [(name, value) for name, value in figures if value]


def _properties(parent: ET.Element, told: list[tuple[str, str]]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in told:
        ET.SubElement(properties, "property", name=printable(name), value=printable(value))
