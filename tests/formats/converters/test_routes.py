"""Finding the chain of converters: shortest, then best known; pinned ones are checked."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.formats.converters.all_converters import CONVERTERS, converter
from conrepair.formats.converters.base import Converter, Option
from conrepair.formats.converters.routes import find_route, pinned_route, reachable
from conrepair.formats.models.formats import OWN
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConfigError, ExitCode
from conrepair.ground.runtime.outside.environments import ENVIRONMENTS, Environment

FORMATS = tuple(OWN)


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    raise NotImplementedError


def edge(source: str, target: str, preference: int = 10, name: str = "", **options: Option) -> Converter:
    return Converter(name or f"{source}-{target}", source, target, ("pip",), _convert, options, preference)


def refusal(*arguments: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        find_route(*arguments)
    assert caught.value.exit_code == ExitCode.USAGE
    return str(caught.value)


# --- Finding ---


def test_the_shortest_route_comes_first_whatever_the_preferences() -> None:
    edges = [edge("a", "b", 1), edge("b", "c", 1), edge("a", "c", 1000)]
    for order in itertools.permutations(edges):
        assert find_route("a", "c", order).name == "a-c"


def test_among_equally_short_ones_the_sum_of_preferences_decides() -> None:
    edges = [edge("a", "b", 1), edge("b", "d", 9), edge("a", "c", 5), edge("c", "d", 4)]
    for order in itertools.permutations(edges):
        assert find_route("a", "d", order).name == "a-c+c-d"


def test_among_equals_the_name_decides() -> None:
    edges = [edge("a", "b", name="two"), edge("a", "b", name="one"), edge("a", "b", 11, name="eleven")]
    for order in itertools.permutations(edges):
        assert find_route("a", "b", order).name == "one"


def test_a_round_trip_has_steps() -> None:
    edges = [edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("c", "b")]
    assert find_route("a", "a", edges).name == "a-b+b-c+c-a"
    assert find_route("b", "b", edges).name == "b-c+c-b"
    assert find_route("a", "a", [*edges, edge("a", "a", name="simplify")]).name == "simplify"


def test_some_are_taken_only_by_name() -> None:
    slim = dataclasses.replace(edge("b", "b", name="slim", preference=0), automatic=False)
    rare = dataclasses.replace(edge("a", "c", name="rare", preference=0), automatic=False)
    edges = [rare, edge("a", "b"), slim, edge("b", "c"), edge("c", "b")]
    assert find_route("a", "c", edges).name == "a-b+b-c"
    assert find_route("b", "b", edges).name == "b-c+c-b"
    assert reachable("a", [rare]) == set()
    refusal("a", "c", [rare])


@pytest.mark.parametrize("name", [name for name, item in CONVERTERS.items() if item.source == item.target])
def test_same_format_converters_are_never_chosen(name: str) -> None:
    assert not CONVERTERS[name].automatic
    for source, target in itertools.product(FORMATS, FORMATS):
        if target in reachable(source):
            assert CONVERTERS[name] not in find_route(source, target).steps
    kept = CONVERTERS[name].source
    assert pinned_route([name], kept, kept).steps == (CONVERTERS[name],)


def test_no_route_lists_what_can_be_reached() -> None:
    edges = [edge("a", "c"), edge("c", "b"), edge("d", "e")]
    text = refusal("a", "e", edges)
    assert text == "there is no route from a to e; from a one reaches: b, c"
    assert refusal("b", "a", edges).endswith("from b one reaches: nothing")
    assert refusal("a", "a", edges).startswith("there is no route from a to a")
    assert refusal("a", "b", []).endswith("reaches: nothing")


def test_what_can_be_reached() -> None:
    edges = [edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("c", "d"), edge("x", "y")]
    assert reachable("a", edges) == {"a", "b", "c", "d"}, "the source itself only by a round trip"
    assert reachable("d", edges) == set()
    assert reachable("x", edges) == {"y"}


def _best(source: str, target: str, edges: list[Converter]) -> tuple[int, int] | None:
    """Length and cost of the best route, by trying all walks."""
    walks: list[tuple[Converter, ...]] = [(edge,) for edge in edges if edge.source == source]
    for _ in range(len(edges) + 1):
        ends = [walk for walk in walks if walk[-1].target == target]
        if ends:
            return len(ends[0]), min(sum(step.preference for step in walk) for walk in ends)
        walks = [(*walk, step) for walk in walks for step in edges if step.source == walk[-1].target]
        walks = walks[:5000]
    return None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.integers(1, 4)),
        max_size=7,
        unique_by=lambda x: x,
    ),
    st.sampled_from("abcd"),
    st.sampled_from("abcd"),
)
def test_no_other_route_is_better(edges: list[tuple[str, str, int]], source: str, target: str) -> None:
    converters = [edge(*item, name=f"{index}") for index, item in enumerate(edges)]
    best = _best(source, target, converters)
    if best is None:
        assert target not in reachable(source, converters)
        refusal(source, target, converters)
        return
    assert target in reachable(source, converters)
    steps = find_route(source, target, converters).steps
    assert (len(steps), sum(step.preference for step in steps)) == best
    assert [step.source for step in steps] == [source, *(step.target for step in steps[:-1])]


def test_converters_that_arent_automatic_are_left_out() -> None:
    named = dataclasses.replace(edge("a", "b", 1), name="named", automatic=False)
    assert find_route("a", "b", [named, edge("a", "c"), edge("c", "b")]).name == "a-c+c-b"
    assert reachable("a", [named]) == set()
    assert refusal("a", "b", [named]).endswith("from a one reaches: nothing")


# --- The converters there are ---


def test_the_registry_is_consistent() -> None:
    assert len(CONVERTERS) >= 9
    for name, item in CONVERTERS.items():
        assert item.name == name
        assert "+" not in name
        assert "/" not in name
        assert {item.source, item.target} <= set(FORMATS)
        assert "missing" not in item.versions().values(), f"{name}: {item.versions()}"
        assert item.complete({}) == {key: option.default for key, option in item.options.items()}
        for key, option in item.options.items():
            assert option.check(option.default, key) == option.default
            assert option.meaning


@pytest.mark.parametrize(
    ("source", "target", "route"),
    [
        ("torch", "onnx", "torch-onnx-dynamo"),
        ("torch", "torch", "torch-onnx-dynamo+onnx2torch"),
        ("keras", "onnx", "keras-onnx-tf2onnx"),
        ("keras", "tflite", "keras-tflite"),
        ("keras", "torch", "keras-onnx-tf2onnx+onnx2torch"),
        ("tensorflow", "torch", "savedmodel-onnx-tf2onnx+onnx2torch"),
        ("tflite", "torch", "tflite-onnx-tf2onnx+onnx2torch"),
    ],
)
def test_the_routes_that_people_ask_for(source: str, target: str, route: str) -> None:
    assert find_route(source, target).name == route


# --- Pinned routes ---


def test_a_pinned_route_is_taken_as_it_is() -> None:
    route = pinned_route(["torch-onnx-script", "onnx2torch"], "torch")
    assert route.name == "torch-onnx-script+onnx2torch"
    assert pinned_route(["torch-onnx-script", "onnx2torch"], "torch", "torch") == route


def test_a_pin_that_doesnt_exist() -> None:
    with pytest.raises(ConfigError, match=r"no converter 'onnx2torhc'; did you mean 'onnx2torch'\?"):
        pinned_route(["torch-onnx-script", "onnx2torhc"], "torch")
    with pytest.raises(ConfigError, match="no converter 'xyzzy'; known: ") as caught:
        converter("xyzzy")
    assert all(name in str(caught.value) for name in CONVERTERS)


def test_a_pin_that_doesnt_fit_the_model() -> None:
    with pytest.raises(ConfigError, match="converter onnx2torch reads onnx, but is given keras; check `via`"):
        pinned_route(["onnx2torch"], "keras")


def test_pins_that_dont_fit_each_other() -> None:
    with pytest.raises(ConfigError, match="converter torch-onnx-script reads torch, but is given onnx"):
        pinned_route(["torch-onnx-dynamo", "torch-onnx-script"], "torch")


def test_pins_that_end_elsewhere() -> None:
    with pytest.raises(ConfigError, match="the route torch-onnx-script ends at onnx, not at tflite"):
        pinned_route(["torch-onnx-script"], "torch", "tflite")


def test_a_pin_that_isnt_automatic() -> None:
    names = ["torch-tflite-litert", "tflite-onnx-tf2onnx", "onnx-savedmodel-onnx2tf"]
    assert pinned_route(names, "torch", "tensorflow").name == "+".join(names)


# --- Options ---


def test_options_are_completed_and_checked() -> None:
    item = edge(
        "a",
        "b",
        opset=Option(17, "ONNX opset"),
        fold=Option(True, "fold constants"),
        mode=Option("fast", "how", ("fast", "exact")),
    )
    assert item.complete({}) == {"opset": 17, "fold": True, "mode": "fast"}
    assert item.complete({"opset": 18, "mode": "exact"}) == {"opset": 18, "fold": True, "mode": "exact"}
    for options, words in [
        ({"opst": 18}, ["no option 'opst'", "opset (ONNX opset)", "fold (fold constants)"]),
        ({"opset": "18"}, ["option 'opset' of a-b takes int", "not '18'"]),
        ({"opset": True}, ["takes int", "not True"]),
        ({"opset": 18.0}, ["takes int", "not 18.0"]),
        ({"fold": 1}, ["takes bool", "not 1"]),
        ({"mode": "slow"}, ["one of ['fast', 'exact']", "not 'slow'"]),
        ({"mode": None}, ["takes str", "not None"]),
    ]:
        with pytest.raises(ConfigError) as caught:
            item.complete(options)
        assert all(word in str(caught.value) for word in words), str(caught.value)
    with pytest.raises(ConfigError, match="it has: none"):
        edge("a", "b").complete({"x": 1})


def test_bounds_of_numbers() -> None:
    item = edge("a", "b", samples=Option(100, "samples", least=1), share=Option(99.9, "percent", least=50, most=100))
    assert item.complete({"samples": 1, "share": 100}) == {"samples": 1, "share": 100.0}
    assert type(item.complete({"share": 100})["share"]) is float
    for options, words in [
        ({"samples": 0}, "'samples' of a-b takes at least 1 .samples., not 0"),
        ({"share": 49.9}, "takes at least 50"),
        ({"share": 101}, "takes at most 100"),
        ({"samples": 1.0}, "takes int"),
        ({"share": True}, "takes float"),
    ]:
        with pytest.raises(ConfigError, match=words):
            item.complete(options)


def test_options_as_a_person_writes_them() -> None:
    assert Option(17, "x").read("18", "o") == 18
    assert Option(0.5, "x").read("1", "o") == 1.0
    assert Option(False, "x").read("True", "o") is True
    assert Option("a", "x", ("a", "b")).read("b", "o") == "b"
    for option, text, words in [
        (Option(17, "opset"), "18.5", r"o takes int \(opset\), not '18.5'"),
        (Option(True, "fold"), "yes", "o takes bool"),
        (Option("a", "x", ("a", "b")), "c", "o takes one of"),
    ]:
        with pytest.raises(ConfigError, match=words):
            option.read(text, "o")


def test_versions_of_what_isnt_installed() -> None:
    item = Converter("x", "a", "b", ("pip", "no-such-package-at-all"), _convert)
    assert item.versions()["no-such-package-at-all"] == "missing"
    assert item.versions()["pip"][0].isdigit()


def test_versions_of_a_tool_in_an_environment_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are part of the conversion's key, all of them."""
    pins = {"some-tool": "1.2", "numpy": "1.0"}
    monkeypatch.setitem(ENVIRONMENTS, "small", Environment("small", "tests", 0.1, 1, pins))
    item = Converter("x", "a", "b", ("pip", "Some_Tool"), _convert, environment="small")
    versions = item.versions()
    assert (versions["pip"], versions["Some_Tool"]) == ("missing", "1.2")
    pins["numpy"] = "1.1"
    assert item.versions() != versions
    litert = CONVERTERS["torch-tflite-litert"].versions()
    assert litert["litert-torch"] == ENVIRONMENTS["litert-torch"].pins["litert-torch"]
    assert litert["torch"] == importlib.metadata.version("torch").partition("+")[0], "programs are handed over"
