"""Runs whose pages are hard to show: names that look like markup, thousands of layers."""

from __future__ import annotations

import base64
import dataclasses
import math
from pathlib import Path

import localizations

from conrepair.application.report.result import AuditResult, Problem, Row
from conrepair.diagnosis.localization.run.kept import Element, Histogram, KeptLayer, KeptParameter, Picture
from conrepair.ground.graph.record import GraphRecord, NodeRecord, TensorRecord
from conrepair.verdicts.evaluate.verdict import Verdict

__all__ = ["HOSTILE", "deep", "hostile"]

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\u2028🦆" + "n" * 10_000


def hostile(folder: Path) -> AuditResult:
    found = localizations.made(3, {1: 0.5})
    found = localizations.with_names(found, HOSTILE, [0, 1, 2])
    found = dataclasses.replace(found, reason=HOSTILE, notes=(HOSTILE,), kept=(_kept(),))
    run = localizations.run_of(found, localizations.about(f"/x/{HOSTILE[:200]}.onnx"), folder)
    problem = Problem(message=HOSTILE, explanation=HOSTILE, last_words=HOSTILE)
    row = dataclasses.replace(run.rows[0], reason=HOSTILE, verdict=Verdict.FAULTY)
    other = Row(model=HOSTILE, conversion=HOSTILE, backend=HOSTILE, kind="target", problem=problem, reason=HOSTILE)
    return dataclasses.replace(run, rows=(row, other, other), notes=(HOSTILE,), name=HOSTILE, command=HOSTILE)


def _kept() -> KeptLayer:
    """Of the layer at fault, whose difference is small, and in part no number."""
    values = Histogram(low=-1.0, high=1.0, source=(1, 2), target=(2, 1), odd=(0, 1))
    source, difference = (base64.b64encode(bytes(levels)).decode() for levels in ((0, 127, 129, 5), (0, 128, 127, 1)))
    return KeptLayer(
        source_tensor="s1",
        target_tensor="t1",
        full_run=False,
        dtype=HOSTILE,
        target_dtype=HOSTILE,
        shape=(1, 1, 2, 2),
        target_shape=(1, 1, 2, 2),
        values=values,
        sample=0,
        scale=2.0,
        difference_scale=1e-3,
        pictures=(Picture(channel=0, error=math.inf, height=2, width=2, source=source, difference=difference),),
        worst=(Element(index=(0, 0, 0, 1), source=2.0, target=math.nan),),
        parameters=(KeptParameter(role=HOSTILE, source_node=HOSTILE, target_node=HOSTILE, values=values),),
    )


def deep(count: int, folder: Path) -> AuditResult:
    """A run of a network of so many layers, every fourth of which adds what lies four before."""
    found = localizations.made(count, {count // 2: 0.5})
    rows = tuple(
        dataclasses.replace(row, source_nodes=(f"s{row.order}",), target_nodes=(f"t{row.order}",))
        for row in found.layers
    )
    about = localizations.about()
    graphs = {}
    for side, model in (("s", about.source), ("t", about.target)):
        nodes = tuple(
            NodeRecord(
                name=f"{side}{place}",
                layer=f"block/{place}/conv",
                operator="Conv",
                native="Conv",
                inputs=tuple(f"{side}{before}" for before in {place - 1, place - 4 * (place % 4 == 0)} - {place}),
                outputs=(f"{side}{place}",),
                attributes={"pads": [1, 1, 1, 1], "strides": [2, 2], "kernel_shape": [3, 3], "group": 1},
            )
            for place in range(count)
        )
        tensors = {node.name: TensorRecord(shape=(1, 64, 56, 56), dtype="float32") for node in nodes}
        graphs[f"{side}{model.sha256}"] = GraphRecord(inputs=(f"{side}-1",), outputs=(), tensors=tensors, nodes=nodes)
    source, target = graphs
    run = localizations.run_of(dataclasses.replace(found, layers=rows), about, folder)
    (row,) = run.rows
    step = row.localized.steps[0]
    compared = dataclasses.replace(
        step.compared,
        source=dataclasses.replace(about.source, sha256=source),
        target=dataclasses.replace(about.target, sha256=target),
    )
    localized = dataclasses.replace(row.localized, steps=(dataclasses.replace(step, compared=compared),))
    return dataclasses.replace(run, rows=(dataclasses.replace(row, localized=localized),), graphs=graphs)
