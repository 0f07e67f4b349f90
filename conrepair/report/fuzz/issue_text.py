"""What is filed with the people whose library is at fault."""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.cases.case import Case
from conrepair.cases.sizes import SIZES
from conrepair.fuzz.finding import Finding
from conrepair.fuzz.suspicion import THREADS, Suspicion
from conrepair.report.fuzz.reproducer import model_text

__all__ = ["issue_text"]

_TOLERANCES = {"NumPy's default": (1e-5, 1e-8), "what maintainers usually ask of float32": (1e-3, 1e-5)}
_MOST = 40  # lines of a network's text


def issue_text(finding: Finding, case: Case) -> str:
    """Text for an issue, as maintainers ask for it: what, with which versions, expected, how to see it, and why.

    Args:
        finding: Which.
        case: Its case.
    """
    suspicion, cause = finding.suspicion, finding.cause
    parts = [f"# {finding.title}", "", _what(finding), ""]
    parts += [f"Versions: {_listed(finding.versions)}.", "", "To see it: `python reproduce.py`", ""]
    text = model_text(case.model)
    if text and text.count("\n") <= _MOST:
        parts += ["```", text.strip(), "```", ""]
    if suspicion.given is not None and suspicion.exact is not None and suspicion.allowed is not None:
        parts += [
            f"At element {list(suspicion.index)} of `{suspicion.output}`:",
            "",
            f"- given: {suspicion.given!r}",
            f"- {_by(suspicion)}: {suspicion.exact!r}",
            f"- error: {abs(suspicion.given - suspicion.exact):.3g}; rounding in the network's own type explains at "
            f"most {suspicion.allowed:.3g}",
            *(f"- {words}" for words in _beyond(suspicion.given, suspicion.exact)),
            "",
        ]
    if suspicion.stage == SIZES:
        sizes = ", ".join(f"{name} = {size}" for name, size in case.options.get(SIZES, {}).items())
        parts += [f"It's seen when what was built, and run once, runs with {sizes}; the first answers are right.", ""]
    parts += [f"Judged by: {finding.judges}. It's seen each time it's run.", ""]
    if cause.plainly:
        parts += ["It's seen with optimizations off, too.", ""]
    for found in cause.causes:
        parts += [f"It hangs on: {', '.join(f'`{name}`' for name in found)}", ""]
    if cause.lines:
        parts += ["Workaround:", "", "```python", *cause.lines, "```", ""]
    nodes = len(finding.operators)
    least = "nothing can be left out" if finding.smallest else "more could perhaps be left out"
    parts += [
        f"The network has {nodes} node{'' if nodes == 1 else 's'}; {least}. First seen in: {finding.source}.",
        "",
    ]
    return "\n".join(parts)


def _by(suspicion: Suspicion) -> str:
    if suspicion.kind == THREADS:
        return "with another number of threads"
    if suspicion.kind == "differs":
        return "by ONNX Runtime without optimizations"
    return "exactly" if isinstance(suspicion.exact, int) else "in float64"


def _what(finding: Finding) -> str:
    words = finding.suspicion.message.replace("`", "'")
    return f"{_listed(finding.blamed) or finding.system}: {words}"


def _beyond(given: float, exact: float) -> list[str]:
    """Whether usual tolerances see it."""
    found = []
    for name, (relative, absolute) in _TOLERANCES.items():
        seen = not abs(given - exact) <= absolute + relative * abs(exact)
        found.append(f"rtol {relative:g}, atol {absolute:g} ({name}): {'fails' if seen else 'passes'}")
    return found


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
