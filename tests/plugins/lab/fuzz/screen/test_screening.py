"""Screening: all small changes of a pattern, of which those are suspects that optimizations compute otherwise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conrepair_lab.cases.smaller.shapes import weights
from conrepair_lab.fuzz.screen.changes import changes, pairs
from conrepair_lab.fuzz.screen.screening import FURTHER, PAIRS, Screener, Seen, changed, subject_of
from conrepair_lab.generate.patterns.language import written
from conrepair_lab.generate.patterns.pattern import Pattern, patterns
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.variants import variants
from conrepair_lab.systems.registry import entry

POWERS = """
powers:
    x = new(2, 3); one(Relu(x), Pow(ReduceMean(x, axes=(-1,)), 2))"""


def pattern(text: str) -> Pattern:
    ((name, aims, body),) = written(text)
    return Pattern(name, tuple(aims), body)


def seen(screener: Screener, name: str) -> Iterator[Seen]:
    drafts = variants(patterns()[name], Support(), 20, 4096)
    found = (screener.seen(subject, made) for subject, made in screener.networks(drafts))
    return filter(None, found)


def test_variants_take_each_alternative_once() -> None:
    found = list(variants(pattern(POWERS), Support(), 20, 4096))
    assert [[node.op for node in draft.nodes] for draft in found] == [["Relu"], ["ReduceMean", "Pow"]]
    layer_norms = list(variants(patterns()["layer norm written out"], Support(), 20, 4096))
    shapes = {next(iter(draft.sources.values())).type.shape for draft in layer_norms}
    assert {(4, 2, 3), (3, 3, 3), (1, 1, 1), (2, 3)} <= shapes, "other sorts of sizes, and numbers of axes"


def test_changes_are_small_and_leave_the_network_as_it_is() -> None:
    *_, draft = variants(pattern(POWERS), Support(), 20, 4096)
    subject = subject_of(draft)
    before = subject.model.SerializeToString()
    found = list(changes(subject))
    assert subject.model.SerializeToString() == before
    words = [change.words for change in found]
    assert len(set(words)) == len(words)
    assert {"ReduceMean.keepdims", "Identity before Pow.0", "Pow exchanged", "constant Pow.1 more"} <= {
        change.sort for change in found
    }
    for change in found:
        assert changed(subject, (change,)).model.SerializeToString() != before, change.words
    two = list(itertools.islice(pairs(found), 500))
    assert all(one.at != other.at for one, other in two)
    assert len(set(two)) == len(two)


def test_numbers_of_a_constant_are_exchanged() -> None:
    text = "moved:\n    Reshape(new(1, 4, 2, 2), shape=(1, 4, -1))"
    (draft,) = variants(pattern(text), Support(), 20, 4096)
    made = [changed(subject_of(draft), (change,)) for change in changes(subject_of(draft))]
    told = {tuple(array.tolist()) for there in made for array in weights(there).values() if array.ndim == 1}
    assert {(-1, 4, 1), (4, 1, -1), (1, 4), (0, 4, -1)} <= told


def test_a_power_that_no_norm_has_is_a_suspect(tmp_path: Path) -> None:
    found = list(seen(Screener(entry("ort-all"), tmp_path), "layer norm written out"))
    of_powers = [item for item in found if "constant" not in item.words and "t4 is float32[] 4.0" in item.words]
    assert [(item.suspicion.kind, item.causes, item.plainly) for item in of_powers] == [
        ("differs", ("LayerNormFusionL1",), False)
    ]
    assert of_powers[0].case.model.graph.output[0].type.tensor_type.elem_type == 1


def test_nodes_without_effect_stand_where_rules_come_first(tmp_path: Path) -> None:
    """Two rules together lose what makes a factor, as long as that stands before the division."""
    found = list(seen(Screener(entry("ort-all"), tmp_path, step=FURTHER), "reciprocal and product"))
    assert ("DivMulFusion", "EliminateIdentity") in {item.causes for item in found}


def test_what_computes_the_same_is_no_suspect(tmp_path: Path) -> None:
    screener = Screener(entry("ort-none"), tmp_path)
    assert not list(seen(screener, "silu"))
    assert screener.computed > 10
    assert screener.fired


def test_a_kept_axis_matters_where_sizes_are_equal(tmp_path: Path) -> None:
    found = list(seen(Screener(entry("ort-all"), tmp_path, step=FURTHER), "rms norm written out"))
    of_kept = [item for item in found if "keepdims of n1 (ReduceMean) is 0" in item.words]
    assert [item.causes for item in of_kept] == [("SimplifiedLayerNormFusion",)], "what's alike is told once"


def test_two_changes_at_a_time_begin_with_those_that_leave_the_optimization(tmp_path: Path) -> None:
    screener = Screener(entry("ort-all"), tmp_path, step=PAIRS)
    drafts = variants(patterns()["relu and clip"], Support(), 20, 4096)
    subject, first = next(screener.networks(drafts))
    assert len(first) == 2
    assert screener._fired(changed(subject, first[:1])) >= {"FuseReluClip"}


@pytest.mark.parametrize("unusual", [False, True])
def test_what_is_not_finite_counts_where_it_is_asked_for(unusual: bool, tmp_path: Path) -> None:
    (draft,) = variants(pattern("root:\n    Sqrt(new(2, 3))"), Support(), 20, 4096)
    subject = subject_of(draft)
    subject.inputs = {name: -np.ones_like(array) for name, array in subject.inputs.items()}
    screener = Screener(entry("ort-all"), tmp_path, unusual=unusual)
    assert screener.seen(subject) is None
    assert screener.computed == unusual
