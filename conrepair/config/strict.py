"""What all parts of a configuration have in common: unknown keys are refused; paths and times are possible ones."""

from __future__ import annotations

import difflib
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from conrepair.runtime.bounds import MOST_SECONDS
from conrepair.runtime.path_text import path_problem

__all__ = ["AnyPath", "OutputPath", "Seconds", "Strict"]

Seconds = Annotated[float, Field(le=MOST_SECONDS)]


def _possible(text: str, *, output: bool = False) -> str:
    if problem := path_problem(text, output=output):
        raise ValueError(problem)
    return text


AnyPath = Annotated[str, AfterValidator(_possible)]
OutputPath = Annotated[str, AfterValidator(partial(_possible, output=True))]


class Strict(BaseModel):
    """Refuses unknown keys, with the closest known one as a suggestion."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = {field.alias or name for name, field in cls.model_fields.items()}
        for key in value:
            if key not in known:
                close = difflib.get_close_matches(str(key), known, n=1)
                hint = f"did you mean '{close[0]}'?" if close else "known keys: " + ", ".join(sorted(known))
                raise ValueError(f"unknown key '{key}'; {hint}")
        return value
