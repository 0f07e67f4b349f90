"""Where jobs run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from conrepair.application.config.strict import Strict

WITHOUT_TLS = "whoever reaches these addresses may run programs there and here"
"""What somebody writes who does without encryption and certificates."""


class DaskConfig(Strict):
    """A Dask cluster (docs/crowd.md)."""

    scheduler: str = Field(min_length=1, description="Address of its scheduler, as tls://10.0.0.1:8786.")
    exchange: str = Field(
        min_length=1,
        description="Where files go from machine to machine: a folder that all see under this name, or a URL that "
        "fsspec opens, as s3://bucket/place.",
    )
    without_tls: Literal["whoever reaches these addresses may run programs there and here"] | None = Field(
        None, description="Said in these words, addresses beyond this machine needn't be encrypted."
    )
