"""Diversity: what was seen in other processes is put together as if it had been seen in one."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import pytest

from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.networks import made
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

SUPPORT = Probed(20, accepted)
WISHES = Wishes(nodes=6, operators=("Add", "Relu", "Softmax", "Concat"), dtypes=("float32",), woven=0.0)

ALONE = """
import json
from random import Random
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.networks import made
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes
seen = Diversity(())
wishes = Wishes(nodes=6, operators=("Add", "Relu", "Softmax", "Concat"), dtypes=("float32",), woven=0.0)
seen.add(made(wishes, Random(0), Probed(20, accepted)).draft)
print(json.dumps(seen.as_json()))
"""


def test_what_was_seen_apart_is_what_is_seen_together() -> None:
    together, apart = Diversity(WISHES.names), Diversity(WISHES.names)
    for seed in range(4):
        draft, alone = made(WISHES, Random(seed), SUPPORT).draft, Diversity(())
        together.add(draft)
        alone.add(draft)
        apart.add_seen(json.loads(json.dumps(alone.as_json())))
    assert apart == together
    told = together.measures()
    assert apart.measures() == told
    assert 0 < told["vertex"] < 1
    assert 0 < told["edge"] <= 1
    assert 0 < told["structural"] <= 1
    assert 0 < together.ones < together.sizes


def test_tokens_are_the_same_in_each_process() -> None:
    seen = Diversity(())
    seen.add(made(WISHES, Random(0), SUPPORT).draft)
    other = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True).stdout
    assert json.loads(other) == seen.as_json()


def test_twice_the_same_adds_no_diversity_but_nodes() -> None:
    draft, once, twice = made(WISHES, Random(1), SUPPORT).draft, Diversity(WISHES.names), Diversity(WISHES.names)
    for seen, times in ((once, 1), (twice, 2)):
        for _ in range(times):
            seen.add(draft)
    assert (twice.edge, twice.vertex) == (once.edge, once.vertex)
    assert twice.structural == pytest.approx(once.structural / 2)
    assert twice.measures()["ones"] == once.measures()["ones"]


def test_nothing_seen_has_no_diversity() -> None:
    told = Diversity(("Add", "Relu")).measures()
    assert told == {
        "edge": 0, "vertex": 0, "structural": 0, "ones": 0, "operators": 2, "unseen": ["Add", "Relu"],
    }  # fmt: skip
    assert Diversity(()).measures()["edge"] == 0
