"""Templates with everything escaped, what lies beside them, and places on the page that others lead to."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from conrepair.application.report.result import AuditResult, Row
from conrepair.diagnosis.localization.result import LayerRow, Localization
from conrepair.ground.runtime.shown.standing import duration
from conrepair.ground.runtime.words import number, percent

if TYPE_CHECKING:
    import jinja2
    import markupsafe


def section_of(row: Row, result: AuditResult) -> str:
    """Of a row of this very result: it's the same however often the page is made."""
    return f"row-{result.places[id(row)]}"


def in_order(found: Localization) -> list[LayerRow]:
    """Pairs of tensors in the source's order: the order of plot, graph and table."""
    return sorted(found.layers, key=lambda layer: layer.order)


def anchor_of(section: str, place: int | None) -> str:
    """Where a layer is shown; "" for one that isn't."""
    return "" if place is None else f"{section}-layer-{place}"


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


def coded(text: str) -> markupsafe.Markup:
    """A sentence as HTML: what stands between backticks is code, and all of it is escaped.

    Args:
        text: Any; a backtick without a second one stays as it is.
    """
    from markupsafe import Markup, escape  # it comes with Jinja2

    parts = re.split(r"`([^`]+)`", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


@functools.cache
def text_of(name: str) -> str:
    """A file of this package.

    Args:
        name: Its path here.
    """
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


@functools.cache
def _templates() -> jinja2.Environment:
    import jinja2  # it takes a while, and what only names places on a page needs none of it

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "coded": coded,
        "figure": lambda value: number(float(value)),
        "percent": lambda value: percent(float(value)),
        "duration": duration,
    }
    return environment
