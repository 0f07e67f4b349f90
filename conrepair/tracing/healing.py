"""The fewest operators which heal a deviation in another form, as PLiner finds lines of programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conrepair.cases.bisection import Reduced, smallest_failing

__all__ = ["REWRITTEN", "fewest_that_heal"]

REWRITTEN = "rewritten.onnx"
"""A network with operators in another form."""


def fewest_that_heal(operators: Sequence[str], heals: Callable[[Sequence[str]], bool], tries: int) -> Reduced:
    """Find the fewest operators that need another form, or more digits, without looking into the system.

    PLiner (Guo et al., "pLiner: Isolating Lines of Floating-Point Code for Compiler-Induced Variability", 2020)
    computes regions of a program in a wider type, halves those that heal, and refines what's left. Regions of a
    network are operators that follow one another; between those that are wide nothing is rounded.

    Args:
        operators: That can be computed otherwise, in the order of the graph.
        heals: Whether a deviation is gone where some of them are.
        tries: How often that may be asked.

    Returns:
        Their places; none where all of them together don't heal.
    """
    if not operators or tries < 1 or not heals(operators):
        return Reduced((), min(len(operators), tries, 1), exact=tries > 0)
    found = smallest_failing(
        len(operators), lambda places: heals([operators[place] for place in places]), tries=tries - 1
    )
    return Reduced(found.places, found.tries + 1, found.exact)
