"""A configuration's section `fuzz`, and the options of the verb, say the same."""

from __future__ import annotations

from typing import Any

import pytest

from conrepair.application.config.load import parse_config
from conrepair.ground.runtime.errors import ConfigError
from conrepair_lab.options.fuzz import USUAL, Fuzz
from conrepair_lab.sections import FuzzConfig


def refusal(**told: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config({"fuzz": told}, "my.json")
    return str(caught.value)


def test_what_is_not_said_is_the_verbs() -> None:
    told = FuzzConfig().model_dump(exclude={"folder"})
    made = Fuzz(**told)
    assert (made.identity, made.entries) == (Fuzz().identity, USUAL)
    for name in ("count", "alone", "network_seconds", "reduction_seconds", "seconds", "nodes"):
        assert getattr(made, name) == getattr(Fuzz(), name)


def test_a_section_alone_is_a_configuration() -> None:
    found = parse_config({"fuzz": {"systems": ["ort-all"], "count": 3, "alone": 0}}, "my.json").fuzz
    assert found is not None
    assert (found.systems, found.count, found.alone, found.folder) == (("ort-all",), 3, 0, "fuzz")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"counts": 3}, "count"),
        ({"count": -1}, "fuzz.count"),
        ({"count": "3"}, "fuzz.count"),
        ({"seconds": 0}, "fuzz.seconds"),
        ({"systems": "ort-all"}, "fuzz.systems"),
        ({"known": ""}, "known is ''"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(told: dict[str, Any], words: str) -> None:
    assert words in refusal(**told)


def test_how_long_it_goes_and_how_many_are_no_other_campaign() -> None:
    first = Fuzz(systems=["ort-all"]).identity
    for more in ({"count": 7}, {"alone": 0}, {"seconds": 3.0}, {"workers": 5}, {"reduction_seconds": 1.0}):
        assert Fuzz(systems=["ort-all"], **more).identity == first
    for other in ({"seed": 1}, {"nodes": 3}, {"systems": ["ort-none"]}, {"operators": ["Add"]}):
        assert Fuzz(**({"systems": ["ort-all"]} | other)).identity != first


def test_systems_are_named_once_in_a_list_or_with_commas() -> None:
    assert Fuzz(systems=["ort-all,ort-none", "ort-all"]).entries == ("ort-all", "ort-none")
