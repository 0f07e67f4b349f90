"""A trace in the words that a person reads first, and many traces in a few lines."""

from __future__ import annotations

import collections
import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from conrepair.formats.backends.base import Switch
from conrepair.ground.runtime.words import printable, shortened
from conrepair.laboratory.tracing.propagation import KernelError
from conrepair.laboratory.tracing.result import Culprits, Deviation, Errors, Traced

_NAME = 60
_SHOWN = 8
_UNKNOWN = {True: "nobody computes this network in float64", False: "those who compute it in float64 differ"}
_TELLING = ("generated", "differs", "amplified", "damped", "cancelled")


def verdict_of(traced: Traced) -> str:
    """One sentence: what's wrong, and who."""
    one, two = traced.setting.name, traced.against.name
    if not traced.deviations:
        return f"no output of {one} and {two} could be compared"
    worst = traced.deviations[0]
    output = shortened(worst.output, _NAME)
    far = f"{output} is {_error(worst.optimization.largest)} apart"
    if worst.kind == "wrong":
        who = {"setting": one, "against": two, "both": f"both {one} and {two}"}[worst.blamed]
        errors = [item for item in (worst.total, worst.framework) if item is not None]
        over = max(item.over or 0.0 for item in errors)
        return f"wrong: {who} at {output}, {over:.3g} times what rounding explains"
    return {
        "ill-conditioned": f"ill-conditioned: {far}, and rounding explains it: neither side is at fault",
        "within": f"right: {far}, within what rounding explains",
        "equal": f"equal: {one} and {two} give the same bits",
        "not judged": f"not judged: {far}, and {_UNKNOWN[worst.total is None]}",
    }[worst.kind]


def traced_lines(traced: Traced) -> Iterator[str]:
    """All that a terminal shows: names come from files."""
    return map(printable, _lines(traced))


def _lines(traced: Traced) -> Iterator[str]:
    yield f"{traced.setting.name} beside {traced.against.name}: {verdict_of(traced)}"
    failed = f", of which {traced.failed} failed" if traced.failed else ""
    rate = traced.evaluations / traced.seconds if traced.seconds else 0.0
    tried = f"{traced.evaluations} inputs tried by {traced.method}"
    yield f"  {tried} in {traced.seconds:.1f} s ({rate:.0f} a second){failed}"
    if traced.changed is not None:
        yield f"  {traced.changed:.1%} of the given samples get another answer"
    for item in traced.deviations[:_SHOWN]:
        yield from _deviation(item, traced)
    yield from _more(len(traced.deviations), "outputs")
    yield from _kernels(traced)
    yield from _culprits(traced.culprits, traced)
    for form in traced.forms:
        healed = {True: "; tried, it heals", False: "; tried, it doesn't heal", None: ""}[form.healed]
        yield f"  why: {form.words}{healed}"
    for doubt in traced.doubts:
        yield f"  note: {doubt}"


def _deviation(item: Deviation, traced: Traced) -> Iterator[str]:
    place = f"[{', '.join(map(str, item.place))}]"
    values = item.values
    yield (
        f"  {shortened(item.output, _NAME)}{place}: {traced.setting.name} {values['setting']:.9g}, "
        f"{traced.against.name} {values['against']:.9g}, exact {values['exact']:.9g}, rounding {item.bound:.2g}"
        + (" (an estimate)" if item.estimated else "")
    )
    sides = [("framework", item.framework), ("optimization", item.optimization), ("total", item.total)]
    told = [f"{name} {_errors(side)}" for name, side in sides if side is not None]
    yield f"    largest relative error: {', '.join(told)}"


def _errors(side: Errors) -> str:
    bounds = "" if side.over is None else f", {side.over:.3g} bounds"
    return f"{_error(side.largest)} ({side.ulps:.3g} ulps{bounds})"


def _error(value: float) -> str:
    return f"{value:.2g}"


def _kernels(traced: Traced) -> Iterator[str]:
    for name, found in ((traced.setting.name, traced.kernels.setting), (traced.against.name, traced.kernels.against)):
        told = [item for item in found if item.change in _TELLING]
        if told:
            yield f"  kernels of {name} ({len(found)}):"
        for item in sorted(told, key=lambda item: (min(_TELLING.index(item.change), 2), -item.introduced))[:_SHOWN]:
            yield f"    {_kernel(item)}"
        yield from (f"  {line}" for line in _more(len(told), "kernels"))


def _kernel(item: KernelError) -> str:
    operators = f" ({', '.join(item.operators)})" if item.operators else ""
    finite = "" if item.finite else "; the first that isn't finite" if not item.incoming else "; not finite"
    apart = f", {item.apart:.3g} ulps from the other side's" if item.change == "differs" else ""
    alone = "" if item.culprits is None else "; each operator alone is right: it's their fusion"
    if item.culprits:
        alone = f"; alone, it's {' and '.join(shortened(name, _NAME) for name in item.culprits)}"
    return (
        f"{item.change} in {shortened(', '.join(item.kernel), _NAME)}{operators}: error {_error(item.incoming)} -> "
        f"{_error(item.outgoing)}, {_error(item.introduced)} its own{apart}{finite}{alone}"
    )


def _culprits(found: Culprits, traced: Traced) -> Iterator[str]:
    if not found.asked:
        return
    tried = f"{found.builds} of at most 2^{found.asked} combinations tried"
    if found.heals:
        yield f"  switch off ({tried}):"
        for heals in found.heals[:_SHOWN]:
            yield f"    {_named(heals)}"
            yield from (f"      {item.line}" for item in heals)
        others = {True: "heals on the other inputs, too", False: "doesn't heal on all other inputs", None: ""}
        cost = "" if found.cost is None else f"a run takes {found.cost:.2f} times as long"
        told = ", ".join(filter(None, (others[found.verified], cost)))
        if told:
            yield f"    the first {told}"
        if found.setting is not None:
            options = found.setting.options.items()
            chosen = " ".join(f"--option {shlex.quote(f'{name}={json.dumps(value)}')}" for name, value in options)
            yield f"    as options: --backend {found.setting.backend} {chosen}"
    elif found.mends:
        yield f"  {traced.setting.name} is right because of ({tried}):"
        for mends in found.mends[:_SHOWN]:
            yield f"    {_named(mends)}"
    elif not found.exact:
        yield f"  not isolated ({tried})"
    elif traced.deviations[0].blamed == "against":
        yield f"  no switch makes {traced.setting.name} right ({tried}): it's right with all of them off, too"
    else:
        yield f"  no switch is to blame ({tried}): it's wrong with all of them off"
    causes = [cause for cause in found.causes if len(cause) > 1 or not found.exact]
    for cause in causes[:_SHOWN]:
        yield f"    {'only together' if found.exact else 'among'}: {_named(cause)}"
    if not found.exact:
        yield "    there may be more, or smaller sets: no more builds were made (--builds)"


def _named(switches: Sequence[Switch]) -> str:
    more = [f"{len(switches) - _SHOWN} more (trace.json)"] if len(switches) > _SHOWN else []
    return " and ".join([*(f"{item.name} ({item.sort})" for item in switches[:_SHOWN]), *more])


def _more(count: int, what: str) -> Iterator[str]:
    if count > _SHOWN:
        yield f"  and {count - _SHOWN} more {what} (trace.json)"


_ABOVE = (1e-3, 1e-2)
_DEVIATIONS = 10
Named = Sequence[tuple[str, Traced]]


def summary_of(found: Named) -> dict[str, Any]:
    """Counts of verdicts, of errors above limits, of culprits; the networks by their verdict."""
    kinds = collections.Counter(traced.deviations[0].kind for _, traced in found if traced.deviations)
    largest = [max((item.optimization.largest for item in traced.deviations), default=0.0) for _, traced in found]
    culprits = collections.Counter(
        " and ".join(item.name for item in traced.culprits.heals[0]) for _, traced in found if traced.culprits.heals
    )
    return {
        "networks": len(found),
        "kinds": dict(kinds.most_common()),
        "largest relative error": {f"above {limit:g}": sum(size > limit for size in largest) for limit in _ABOVE},
        "culprits": dict(culprits.most_common()),
        "each": {name: verdict_of(traced) for name, traced in found},
    }


def summary_lines(found: Named) -> Iterator[str]:
    """The same for a terminal."""
    told = summary_of(found)
    kinds = ", ".join(f"{count} {kind}" for kind, count in told["kinds"].items())
    above = ", ".join(f"{count} {words}" for words, count in told["largest relative error"].items())
    yield f"{told['networks']} networks: {kinds or 'none compared'}; largest relative error: {above}"
    for name, count in list(told["culprits"].items())[:_DEVIATIONS]:
        yield f"  {count} healed without {name}"
