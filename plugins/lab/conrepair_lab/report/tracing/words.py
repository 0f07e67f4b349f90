"""A trace in the words that a person reads first, and many traces in a few lines."""

from __future__ import annotations

import collections
import json
import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from conrepair.formats.backends.base import Switch
from conrepair.ground.runtime.words import counted, number, percent, printable, shortened
from conrepair_lab.tracing.propagation import KernelError
from conrepair_lab.tracing.result import Culprits, Deviation, Errors, Traced

_NAME = 60
_SHOWN = 8
_EXACT = "exact"
_UNKNOWN = {
    True: "nothing computes this network in float64, so the exact value isn't known",
    False: "those who compute this network in float64 contradict each other",
}
_TELLING = ("generated", "differs", "amplified", "damped", "cancelled")
_AMPLIFIED = ", within rounding error, which this network amplifies"
_TEN, _READ = 10.0, 1e9  # numbers between are told with all their digits


def verdict_of(traced: Traced) -> str:
    """One sentence: what's wrong, by how much, and which side."""
    one, two = traced.setting.name, traced.against.name
    if not traced.deviations:
        return f"not judged: {one} and {two} have no output that could be compared"
    worst = traced.deviations[0]
    output = f"`{shortened(worst.output, _NAME)}`"
    if worst.kind == "wrong":
        return f"wrong: {_blamed(worst, output, one, two)}"
    if worst.kind == "equal":
        infinite = worst.total is not None and math.isinf(worst.total.largest)
        far = f"; {output} is {_not_finite(worst, 'exact')}{_unbounded(worst)}" if infinite else ""
        return f"equal: {one} and {two} give the same bits{far}"
    away = "exact values" if two == _EXACT else two
    far = f"{output} of {one} is {percent(worst.optimization.largest)} off {away}"
    if math.isinf(worst.optimization.largest):
        far = f"{output} of {one} is {_not_finite(worst, 'against')}"
    return {
        "ill-conditioned": f"ill-conditioned: {far}{_unbounded(worst) or _AMPLIFIED}; neither side is at fault",
        "within": f"right: {far}, within rounding error",
        "not judged": f"not judged: {far}, and {_UNKNOWN[worst.total is None]}",
    }[worst.kind]


def _not_finite(worst: Deviation, other: str, side: str = "setting") -> str:
    return f"{worst.values[side]:g} where it should be {worst.values[other]:.3g}"


def _unbounded(worst: Deviation) -> str:
    return " (a value on the way may overflow, so rounding errors have no limit)" if math.isinf(worst.bound) else ""


def _blamed(worst: Deviation, output: str, one: str, two: str) -> str:
    sides = [(one, "setting", worst.total), (two, "against", worst.framework)]
    if worst.blamed == "against":
        sides.reverse()
    (name, side, first), (other, _, second) = sides
    if first is None or math.isinf(first.largest):
        told = f"{output} of {name} is {_not_finite(worst, 'exact', side)}"
    else:
        told = f"{name} is {percent(first.largest)} off the exact value of {output}, {_over(first)}"
    if worst.blamed == "both" and second is not None:
        return f"{told}; so is {other} ({percent(second.largest)})"
    return told if other == _EXACT else f"{told}; {other} is right"


def _over(side: Errors | None) -> str:
    return f"{_many(side.over)} times the rounding error" if side is not None and side.over else ""


def _many(value: float) -> str:
    """A number that may be large, as 73,000 and not 7.3e+04."""
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.0f}" if _TEN <= rounded < _READ else number(value)


def traced_lines(traced: Traced) -> Iterator[str]:
    """All that a terminal shows: names come from files."""
    return map(printable, _lines(traced))


def _lines(traced: Traced) -> Iterator[str]:
    yield verdict_of(traced)
    failed = f", {traced.failed} of which couldn't be run" if traced.failed else ""
    yield f"  searched: {counted(traced.evaluations, 'input')} in {traced.seconds:.1f} s by {traced.method}{failed}"
    if traced.changed is not None:
        yield f"  predictions: {percent(traced.changed)} of the given samples get another one"
    for item in traced.deviations[:_SHOWN]:
        yield from _deviation(item, traced)
    yield from _more(len(traced.deviations), "outputs")
    yield from _kernels(traced)
    yield from _culprits(traced.culprits, traced)
    for form in traced.forms:
        healed = {True: " Tried: that's right.", False: " Tried: that's no better.", None: ""}[form.healed]
        yield f"  why: {form.words}{healed}"
    for doubt in traced.doubts:
        yield f"  note: {doubt}"


def _deviation(item: Deviation, traced: Traced) -> Iterator[str]:
    place = f"[{', '.join(map(str, item.place))}]"
    one, two, values = traced.setting.name, traced.against.name, item.values
    other = "" if two == _EXACT else f"{two} {values['against']:.9g}, "
    estimated = " (an estimate)" if item.estimated else ""
    yield (
        f"  worst element {shortened(item.output, _NAME)}{place}: {one} {values['setting']:.9g}, {other}"
        f"exact {values['exact']:.9g}; rounding error at most {number(item.bound)}{estimated}"
    )
    sides = [(one, item.total), *([] if two == _EXACT else [(two, item.framework)])]
    told = [f"{name} {_errors(side)}" for name, side in sides if side is not None]
    if two != _EXACT and not item.optimization.largest:
        told = [f"{_errors(item.total)}, the same on both sides"] if item.total else []
    elif two != _EXACT:
        yield f"    largest difference between both: {_errors(item.optimization)}"
    if told:
        yield f"    largest difference from exact values: {', '.join(told)}"


def _errors(side: Errors) -> str:
    return f"{percent(side.largest)} ({', '.join(filter(None, (f'{_many(side.ulps)} ulps', _over(side))))})"


def _kernels(traced: Traced) -> Iterator[str]:
    one, two = traced.setting.name, traced.against.name
    for name, other, found in ((one, two, traced.kernels.setting), (two, one, traced.kernels.against)):
        told = [item for item in found if item.change in _TELLING]
        if told:
            yield f"  kernels of {name} that change the error ({len(told)} of {len(found)}):"
        for item in sorted(told, key=lambda item: (min(_TELLING.index(item.change), 2), -item.introduced))[:_SHOWN]:
            yield f"    {_kernel(item, other)}"
        yield from (f"  {line}" for line in _more(len(told), "kernels"))


def _kernel(item: KernelError, other: str) -> str:
    name = f"`{shortened(', '.join(item.kernel), _NAME)}`"
    many = len(item.operators) > 1
    called = f"{name} ({', '.join(item.operators)})" if many else " ".join((*item.operators, name))
    finite = (
        ""
        if item.finite
        else ". Its result is the first that isn't finite"
        if not item.incoming
        else (". Its result isn't finite")
    )
    alone = "" if item.culprits is None else ". Each of its operators is right alone: their fusion is at fault"
    if item.culprits:
        alone = f". Alone, {' and '.join(shortened(name, _NAME) for name in item.culprits)} is at fault"
    apart = (
        ""
        if item.apart is None
        else f"; on the same inputs its result is {_many(item.apart)} ulps from that of {other}"
    )
    gets, adds, comes = map(_error, (item.incoming, item.introduced, item.outgoing))
    said = {
        "generated": f"receives {gets}, adds {adds}, {_many(item.over)} times the rounding error",
        "differs": f"receives {gets}, adds {adds}, within rounding error{apart}",
        "amplified": f"receives {gets}, amplifies it to {_size(item.outgoing)}, is right itself",
        "damped": f"receives {gets}, reduces it to {_size(item.outgoing)}",
        "cancelled": f"receives {gets}, passes on {comes}",
    }[item.change]
    return f"{called}: {said}{finite}{alone}"


def _size(error: float) -> str:
    return percent(error) if error else "none"


def _error(error: float) -> str:
    told = percent(error)
    if math.isinf(error):
        return "an infinite error"
    return f"an error {told}" if told.startswith("below") else f"an error of {told}" if error else "no error"


def _culprits(found: Culprits, traced: Traced) -> Iterator[str]:
    if not found.asked:
        return
    one, worst = traced.setting.name, traced.deviations[0]
    wrong = worst.kind == "wrong"
    tried = f"{counted(found.builds, 'combination')} of {found.asked} switches tried"
    if found.heals:
        yield f"  each of these, switched off, takes the {'error' if wrong else 'difference'} away ({tried}):"
        for heals in found.heals[:_SHOWN]:
            yield f"    {_named(heals)}"
            yield from (f"      {item.line}" for item in heals)
        others = {True: "the other inputs are right", False: "some of the other inputs are still wrong", None: ""}
        cost = "" if found.cost is None else f"a run takes {found.cost:.2f} times as long"
        told = " and ".join(filter(None, (others[found.verified], cost)))
        if told:
            yield f"    without the first, {told}"
        if found.setting is not None:
            options = found.setting.options.items()
            chosen = " ".join(f"--option {shlex.quote(f'{name}={json.dumps(value)}')}" for name, value in options)
            yield f"    without the first, for `conrepair execute`: --backend {found.setting.backend} {chosen}"
    elif found.mends:
        yield f"  {one} is right because of these ({tried}):"
        for mends in found.mends[:_SHOWN]:
            yield f"    {_named(mends)}"
    elif not found.exact:
        yield f"  which optimization is the cause wasn't found ({tried})"
    elif worst.blamed == "against":
        yield f"  {one} is right with all {found.asked} optimizations off, too"
    else:
        is_so = "wrong" if wrong else "as far off"
        yield f"  no optimization causes this: {one} is {is_so} with all {found.asked} of them off"
    for cause in [cause for cause in found.causes if len(cause) > 1 or not found.exact][:_SHOWN]:
        yield f"    {'only together they cause it' if found.exact else 'the cause is among'}: {_named(cause)}"
    if not found.exact:
        yield "    there may be others, or fewer may be enough: more builds (--builds) find out"


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
    kinds = ", ".join(f"{count} {kind}" for kind, count in told["kinds"].items()).replace("within", "right")
    yield f"{counted(told['networks'], 'network')}: {kinds or 'none compared'}"
    above = zip(_ABOVE, told["largest relative error"].values(), strict=True)
    yield f"  outputs differ between both sides: {', '.join(f'in {n} by more than {percent(x)}' for x, n in above)}"
    for name, count in list(told["culprits"].items())[:_DEVIATIONS]:
        yield f"  {count} {'is' if count == 1 else 'are'} right without {name}"
