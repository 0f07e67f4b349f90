"""Templates with everything escaped, and what lies beside them."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import jinja2

from conrepair.runtime.standing import duration
from conrepair.runtime.words import number

__all__ = ["policy", "rendered", "text_of"]


def rendered(template: str, **values: Any) -> str:
    """HTML of a template.

    Args:
        template: Its name.
        **values: What it shows.
    """
    return _templates().get_template(template).render(values)


def policy(scripts: Sequence[str] = ()) -> str:
    """What the browser may do: run these scripts and no others, load nothing from anywhere.

    Args:
        scripts: Their texts.
    """
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    nothing = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return f"{nothing}; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"


@functools.cache
def text_of(name: str) -> str:
    """A file of this package.

    Args:
        name: Its path here.
    """
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": _figure, "duration": duration}
    return environment


def _figure(value: Any) -> str:
    return number(float(value))
