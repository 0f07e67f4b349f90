"""What all parts of a configuration have in common: unknown keys are refused; paths and times are possible ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from conrepair.ground.runtime.bounds import MOST_SECONDS
from conrepair.ground.runtime.path_text import path_problem
from conrepair.ground.runtime.words import meant

# As the JSON Schema has them: pydantic alone would read "16", "yes" and true as numbers and truth values.
Int = StrictInt
Float = StrictFloat
Bool = StrictBool
Seconds = Annotated[Float, Field(le=MOST_SECONDS)]


def _possible(text: str, *, output: bool = False) -> str:
    if problem := path_problem(text, output=output):
        raise ValueError(problem)
    return text


AnyPath = Annotated[str, AfterValidator(_possible)]
OutputPath = Annotated[str, AfterValidator(partial(_possible, output=True))]


_UNKNOWN, _RULE = "unknown_key", "rule"  # sorts of problems that pydantic has no name for


class Strict(BaseModel):
    """Refuses unknown keys, with the closest known one as a suggestion."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    gone: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys that there were, and what to do instead."""

    @model_validator(mode="wrap")
    @classmethod
    def _unknown_keys_explained(cls, value: Any, read: ModelWrapValidatorHandler[Strict]) -> Strict:
        """Say of unknown keys which ones may have been meant, beside all that is wrong with the known ones."""
        try:
            return read({key: _whole(item) for key, item in value.items()} if isinstance(value, dict) else value)
        except ValidationError as error:
            raise ValidationError.from_exception_data(
                cls.__name__, [cls._explained(problem) for problem in error.errors()]
            ) from None

    @classmethod
    def _explained(cls, problem: Any) -> InitErrorDetails:
        kind, location, context = problem["type"], problem["loc"], problem.get("ctx", {})
        if kind == "extra_forbidden" and len(location) == 1:
            kind, context = _UNKNOWN, {"words": cls._meant(str(location[0]))}
        if kind in {_UNKNOWN, _RULE}:
            kind = _told(kind, context["words"])
        return InitErrorDetails(type=kind, loc=location, input=problem["input"], ctx=context)

    @classmethod
    def _meant(cls, key: str) -> str:
        if key in cls.gone:
            return f"'{key}' was taken out: {cls.gone[key]}"
        known = sorted(field.alias or name for name, field in cls.model_fields.items())
        return f"unknown key '{key}'" + meant(key, known, f"known keys: {', '.join(known)}")


def _whole(value: Any) -> Any:
    """16.0 is a whole number to the JSON Schema."""
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def refusal_at(problems: Sequence[tuple[tuple[int | str, ...], str]]) -> ValidationError:
    """What a validator raises that refuses several places of its value.

    Args:
        problems: Each place below the value, and what is wrong there.
    """
    lines = [InitErrorDetails(type=_told(_RULE, words), loc=place, input=None) for place, words in problems]
    return ValidationError.from_exception_data("configuration", lines)


def this_one(*keys: str) -> list[JsonValue]:
    """For `oneOf` of a JSON Schema: one of these keys is given, and isn't null."""
    return [{"required": [key], "properties": {key: {"not": {"type": "null"}}}} for key in keys]


def _told(kind: str, words: str) -> PydanticCustomError:
    return PydanticCustomError(kind, "{words}", {"words": words})
