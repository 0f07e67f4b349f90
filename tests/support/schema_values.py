"""Documents that a JSON Schema accepts, drawn from it, and the same with one place made odd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

__all__ = ["documents", "spoiled"]

_ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -1, 1.0, 0.5, 10**40, "", "1", "0.5", "true", "yes", "x", [], {}, [1]]),
    st.integers(-3, 100),
    st.text("abc1.", max_size=3),
)


@st.composite
def documents(draw: st.DrawFn, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """A value that the schema accepts, but for what its `oneOf` and `anyOf` say of an object's keys.

    Args:
        draw: By hypothesis.
        schema: Of the value.
        root: With the definitions that it refers to.
    """
    if "$ref" in schema:
        return draw(documents(root["$defs"][schema["$ref"].rpartition("/")[2]], root))
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from([schema["const"]] if "const" in schema else schema["enum"]))
    if "type" not in schema:
        choices = schema.get("anyOf") or schema.get("oneOf")
        return draw(documents(draw(st.sampled_from(choices)), root)) if choices else draw(_ODD)
    return draw(_OF_TYPE[schema["type"]](schema, root))


def _whole(schema: Mapping[str, Any], _: Any) -> st.SearchStrategy[Any]:
    least = schema.get("minimum", -5)
    most = min(schema.get("maximum", least + 50), least + 50)
    return st.one_of(st.integers(least, most), st.integers(least, most).map(float))


def _number(schema: Mapping[str, Any], _: Any) -> st.SearchStrategy[Any]:
    least = schema.get("minimum", schema.get("exclusiveMinimum", -5) + 0.25)
    return st.sampled_from([least, min(schema.get("maximum", least + 1), least + 1)]) | st.just(
        int(least + 1) if schema.get("maximum", least + 2) >= int(least + 1) >= least else least
    )


def _text(schema: Mapping[str, Any], _: Any) -> st.SearchStrategy[Any]:
    if "pattern" in schema:
        alphabet = st.characters(min_codepoint=33, max_codepoint=126)
        return st.from_regex(schema["pattern"].replace("$", r"\Z"), alphabet=alphabet).filter(
            lambda text: len(text) <= schema.get("maxLength", 50)
        )
    return st.sampled_from(["onnx", "net.onnx", "torch", "local", "photos", "libraries"])


@st.composite
def _object(draw: st.DrawFn, schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    known = schema.get("properties", {})
    if not known:
        values = schema.get("additionalProperties", True)
        inner = documents(values, root) if isinstance(values, Mapping) else _ODD
        return draw(st.dictionaries(st.sampled_from(["a", "opset", "x"]), inner, max_size=2))
    wanted = {*schema.get("required", ())}
    choice = draw(st.sampled_from(schema.get("oneOf") or schema.get("anyOf") or [{}]))
    others = {key for item in schema.get("oneOf", ()) for key in item["required"]}
    wanted |= set(choice.get("required", ()))
    free = [key for key in known if key not in wanted | others]
    wanted |= set(draw(st.lists(st.sampled_from(free), max_size=4, unique=True)) if free else ())
    return {key: draw(documents(known[key], root)) for key in known if key in wanted}


@st.composite
def _array(draw: st.DrawFn, schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    if "prefixItems" in schema:
        return [draw(documents(item, root)) for item in schema["prefixItems"]]
    return draw(st.lists(documents(schema["items"], root), min_size=schema.get("minItems", 0), max_size=2))


_OF_TYPE: dict[str, Any] = {
    "integer": _whole,
    "number": _number,
    "string": _text,
    "boolean": lambda *_: st.booleans(),
    "null": lambda *_: st.none(),
    "object": _object,
    "array": _array,
}


@st.composite
def spoiled(draw: st.DrawFn, value: Any) -> Any:
    """The value with one place in it made odd: another value, a key gone, or one too many.

    Args:
        draw: By hypothesis.
        value: Of JSON; it's left as it is.
    """
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 9)) == 0:
        return draw(_odd_like(value))
    if isinstance(value, list):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(spoiled(value[place])), *value[place + 1 :]]
    key = draw(st.sampled_from(sorted(value)))
    deed = draw(st.integers(0, 9))
    if deed == 0:
        return {name: item for name, item in value.items() if name != key}
    if deed == 1:
        return value | {f"{key}x": draw(_ODD)}
    return value | {key: draw(spoiled(value[key]))}


def _odd_like(value: Any) -> st.SearchStrategy[Any]:
    """Another value: the same as a text most often, as that's the mistake that people make."""
    same = [str(value)] if isinstance(value, int | float | bool) else []
    return st.one_of(_ODD, *([st.sampled_from(same)] if same else []))
