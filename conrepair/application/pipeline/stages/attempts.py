"""Converters on pieces of a graph, in workers, each try stored like every other job."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conrepair.application.engine.task import Result, Runner, Task
from conrepair.application.jobs.values import ConversionStep, Outlined
from conrepair.application.report.row_paths import placed, resolved_in
from conrepair.diagnosis.repairs.conversion.likeness import same_failure
from conrepair.diagnosis.repairs.conversion.remedies import RouteStep
from conrepair.diagnosis.repairs.conversion.result import Stop
from conrepair.formats.models.formats import framework_needs
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.bisection import Reduced, smallest_failing
from conrepair.ground.runtime.processes.workers import Failure

_TRIES = 60
_NAMED = 4  # nodes that an error names, tried before all others
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class GraphPiece:
    """Nodes of an outlined graph.

    Attributes:
        model: The outline, as `conrepair.diagnosis.repairs.conversion.piece` writes it.
        nodes: Places; None for all.
    """

    model: Model
    nodes: tuple[int, ...] | None


class Attempts:
    """Tries converters on pieces.

    Args:
        scheduler: Runs them.
        seconds: For one try.
    """

    def __init__(self, scheduler: Runner, seconds: float) -> None:
        self._scheduler, self._seconds = scheduler, seconds
        self._count = 0

    def stop_of(
        self, model: Model, steps: Sequence[RouteStep], failure: Failure, end: float, *, run: bool
    ) -> tuple[Stop, GraphPiece | None]:
        """Find what converters stop at.

        Args:
            model: What the first of them reads.
            steps: The last one fails.
            failure: How.
            end: By `time.monotonic`, when the search ends.
            run: Whether it's the result that fails, when it runs.

        Returns:
            What they stop at, and the piece; None where the graph can't be cut.
        """
        started = time.monotonic()
        stop = Stop(converter=steps[-1].converter.name, error=str(failure))
        if model.framework != "onnx":
            return replace(stop, note="only ONNX graphs can be cut into segments"), None
        if any(step.converter.calibrates(step.converter.complete(step.options)) for step in steps):
            return replace(stop, note="segments have no data to calibrate with"), None
        outlined = self._outline(model)
        if isinstance(outlined, Failure):
            return replace(stop, note=f"the graph can't be cut: {outlined}"), None
        nodes = outlined.nodes
        whole = GraphPiece(outlined.model, None)
        here = self.failure_of(whole, steps, run=run)
        if here is None or not same_failure(here, failure):
            said = "doesn't fail" if here is None else f"fails in another way: {here}"
            return replace(stop, note=f"with its functions inlined and its sizes declared, the graph {said}"), None

        def fails(places: Sequence[int]) -> bool:
            found = self.failure_of(GraphPiece(outlined.model, tuple(places)), steps, run=run)
            return found is not None and same_failure(found, failure)

        found = self._named(nodes, failure, fails) or smallest_failing(
            len(nodes), fails, tries=_TRIES, more=lambda: time.monotonic() < end
        )
        guilty = [nodes[place] for place in found.places]
        stop = replace(
            stop,
            operators=tuple(node["operator"] for node in guilty),
            nodes=tuple(node["name"] for node in guilty),
            of=len(nodes),
            tries=found.tries + 1,
            seconds=time.monotonic() - started,
            exact=found.exact,
        )
        return stop, GraphPiece(outlined.model, found.places)

    def failure_of(self, piece: GraphPiece, steps: Sequence[RouteStep], *, run: bool) -> Failure | None:
        """How converters fail on a piece, one after the other; None where they don't."""
        payload = {
            "model": piece.model,
            "nodes": piece.nodes,
            "steps": tuple(
                ConversionStep.of(step.converter, step.converter.complete(step.options)) for step in steps
            ),
            "run": run,
        }
        last = steps[-1].converter
        needs = last.needs | (framework_needs(last.target) if run else frozenset())
        return self._result("attempt", payload, needs).failure

    @staticmethod
    def _named(
        nodes: Sequence[Mapping[str, str]], failure: Failure, fails: Callable[[Sequence[int]], bool]
    ) -> Reduced | None:
        """One of the nodes that the failure names, by its name or its operator, if it fails alone."""
        words = set(_WORD.findall(failure.message))
        named = [place for place, node in enumerate(nodes) if node["name"] in failure.message]
        first = {node["operator"]: place for place, node in reversed(list(enumerate(nodes)))}
        named += [place for operator, place in first.items() if operator in words]
        for tries, place in enumerate(dict.fromkeys(named[:_NAMED]), 1):
            if fails([place]):
                return Reduced((place,), tries, exact=True)
        return None

    def _outline(self, model: Model) -> Outlined | Failure:
        result = self._result("outline", {"model": model.bare}, frozenset({"onnx"}))
        if result.entry is None:
            return result.failure or Failure("refused", "Blocked", "nothing was made")
        made = result.entry.read(Outlined)
        return replace(made, model=placed(made.model, resolved_in(result.entry.folder)))

    def _result(self, kind: str, payload: dict[str, Any], needs: frozenset[str]) -> Result:
        self._count += 1
        name = f"{kind} {id(self)} {self._count}"
        task = Task(name, kind, lambda _: payload, needs=needs, timeout=self._seconds, keep_failure=True)
        self._scheduler.run([task])
        return self._scheduler.results[name]
