"""Options that say where jobs run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from conrepair.cli.parser import Parser
from conrepair.runtime.errors import UsageError

if TYPE_CHECKING:
    from conrepair.config.model import EngineConfig

__all__ = ["add_engine", "engine_of"]


def add_engine(parser: Parser) -> None:
    """For verbs of many jobs.

    Args:
        parser: Of the verb.
    """
    parser["general"].add_argument(
        "--engine",
        choices=("here", "dask"),
        help="Where jobs run: on this machine, or on a Dask cluster (default: here, or as the configuration says).",
    )
    parser["general"].add_argument(
        "--scheduler", metavar="ADDRESS", help="Of the cluster's scheduler, as tls://10.0.0.1:8786."
    )
    parser["general"].add_argument(
        "--exchange",
        metavar="PLACE",
        help="Where files go from machine to machine: a folder that all of them see, or a URL as s3://bucket/place.",
    )


def engine_of(options: argparse.Namespace, configured: EngineConfig | None = None) -> EngineConfig:
    """Where jobs run, by the options, else by a configuration.

    Args:
        options: Of the command line.
        configured: What a configuration says.

    Raises:
        UsageError: if options lack each other.
    """
    from conrepair.config.engine import DaskConfig
    from conrepair.config.model import EngineConfig

    known = configured or EngineConfig()
    if options.engine == "here":
        known = EngineConfig()
    elif options.engine == "dask":
        before = known.dask
        scheduler = options.scheduler or (before and before.scheduler)
        exchange = options.exchange or (before and before.exchange)
        if not scheduler or not exchange:
            raise UsageError("--engine dask needs --scheduler ADDRESS and --exchange PLACE (docs/crowd.md).")
        without = None if before is None else before.without_tls
        return EngineConfig(dask=DaskConfig(scheduler=scheduler, exchange=exchange, without_tls=without))
    if options.scheduler or options.exchange:
        raise UsageError("--scheduler and --exchange are of --engine dask.")
    return known
