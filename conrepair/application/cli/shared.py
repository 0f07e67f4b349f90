"""Options of many verbs: models, outputs, the time limit, and where jobs run."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any

from conrepair.application.cli.parser import Parser
from conrepair.application.verbs.numbers import seconds
from conrepair.application.verbs.option import About, Options
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.words import meant

if TYPE_CHECKING:
    from conrepair.application.config.model import EngineConfig


_HERE = "here"


def add_engine(parser: Parser) -> None:
    """For verbs of many jobs.

    Args:
        parser: Of the verb.
    """
    general = parser["general"]
    engine = general.add_argument(
        "--engine",
        metavar="NAME",
        help="Where jobs run: on this machine, or on a Dask cluster (default: here, or as the configuration says).",
    )
    scheduler = general.add_argument(
        "--scheduler", metavar="ADDRESS", help="Address of the cluster's scheduler, as tls://10.0.0.1:8786."
    )
    exchange = general.add_argument(
        "--exchange",
        metavar="PLACE",
        help="Where files go from machine to machine: a folder that all of them see, or a URL as s3://bucket/place.",
    )
    parser.seldom += [engine, scheduler, exchange]


def engine_of(options: argparse.Namespace, configured: EngineConfig | None = None) -> EngineConfig:
    """Where jobs run, by the options, else by a configuration.

    Args:
        options: Of the command line.
        configured: What a configuration says.

    Raises:
        UsageError: if options lack each other.
    """
    from pydantic import ValidationError

    from conrepair.application.config.model import EngineConfig
    from conrepair.application.config.parts import ENGINES

    known = configured or EngineConfig()
    given = {name: value for name in ("scheduler", "exchange") if (value := getattr(options, name)) is not None}
    if options.engine in {None, _HERE}:
        if given:
            raise UsageError("--scheduler and --exchange are of another engine: give --engine dask.")
        return known if options.engine is None else EngineConfig()
    name = options.engine
    if name not in ENGINES:
        there = ", ".join([_HERE, *ENGINES])
        raise UsageError(f"--engine {name}: there's no such engine{meant(name, ENGINES)} (known: {there}).")
    before = getattr(known, name)
    told = {} if before is None else before.model_dump(exclude_none=True)
    try:
        return EngineConfig.model_validate({name: told | given})
    except ValidationError as error:
        lacking = ", ".join(f"--{item['loc'][-1]}" for item in error.errors() if item["type"] == "missing")
        raise UsageError(f"--engine {name} needs {lacking or 'other values'} (docs/crowd.md).") from error


_SEARCHES = ("seconds", "advice")
_SHARE = 0.25  # of the time, for each search that nobody gave a time of its own


class _Given(argparse.Action):
    """An option's value, and that somebody gave it."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        """Keep both."""
        setattr(namespace, self.dest, values)
        namespace.given = {*getattr(namespace, "given", ()), self.dest}


def add_timeout(parser: Parser, what: str = "", *, searches: str = "") -> None:
    """How long the command may take.

    Args:
        parser: Of the verb.
        what: What has 600 s where no time is given for the command; "" where an option of the verb's says it.
        searches: Options of searches, whose time is added where it's given.
    """
    besides = f" (plus those of {searches}, if given)" if searches else ""
    default = f" Without it each {what} may take 600 s." if what else ""
    parser["general"].add_argument(
        "--timeout",
        action=_Given,
        type=seconds,
        default=600.0,
        metavar="S",
        help=f"Stop after S seconds{besides}, with exit code 4.{default}",
    )


def time_limit(options: argparse.Namespace) -> float | None:
    """Seconds that the command has; None where nobody bounds it.

    Searches whose time is given have it besides; others get a share of the whole.

    Args:
        options: Of the command line; times of searches are changed in it.
    """
    given = getattr(options, "given", ())
    if "timeout" not in given:
        return None
    whole = float(options.timeout)
    for name in _SEARCHES:
        value = getattr(options, name, None)
        if value is None:
            continue
        if name in given:
            whole += value
        else:
            setattr(options, name, min(value, _SHARE * options.timeout))
    return whole


_SHORT = {"count": "-n", "known": "--known", "output": "-o", "workers": "-j"}  # and older names


def add_fresh(parser: Parser) -> None:
    """For verbs whose results are kept in the user's cache."""
    fresh = parser["general"].add_argument(
        "--fresh",
        action="store_true",
        help="Don't take results from the cache (`conrepair cache`): compute them again.",
    )
    parser.seldom.append(fresh)


def add_output(parser: Parser, words: str, *, metavar: str = "FOLDER", default: str | None = None) -> None:
    """Where to write, of a verb whose own options don't say it.

    Args:
        parser: Of the verb.
        words: Whole sentences.
        metavar: What help calls it.
        default: Where to write if nobody says it.
    """
    parser["output"].add_argument("-o", "--output", metavar=metavar, default=default, help=words)


def add_baseline(parser: Parser, *, what: str = "differences", seldom: bool = False) -> None:
    """For verbs that judge: what is known makes them fail no more.

    Args:
        parser: Of the verb; one whose own options name the file has it already.
        what: It's a list of.
        seldom: Whether only the whole help has it.
    """
    given: list[argparse.Action] = []
    if what == "differences":
        known = parser["tolerances"].add_argument(
            "--baseline",
            metavar="FILE",
            help="Known differences (JSON): they don't fail, new or worse ones do, one that has gone is named "
            "(docs/report.md).",
        )
        given.append(known)
    update = parser["output"].add_argument(
        "--update-baseline",
        action="store_true",
        help=f"Write the {what} of this run into the file of --baseline; reasons that stand in it are kept.",
    )
    parser.seldom += [*given, update] if seldom else []


def add_force(parser: Parser) -> None:
    """For verbs that replace only what they wrote."""
    parser["output"].add_argument(
        "--force",
        action="store_true",
        help="Replace what an earlier call of this verb wrote, unless somebody changed it.",
    )


_FORMS = {"text": "text", "json": "JSON", "github": "text with GitHub's ::error lines"}


def add_format(parser: Parser, *forms: str) -> None:
    """What is printed.

    Args:
        parser: Of the verb.
        *forms: Those that there are; default: text and JSON.
    """
    known = forms or ("text", "json")
    words = f"Print {', or '.join(_FORMS[form] for form in known)} (default: %(default)s)."
    parser["output"].add_argument("-f", "--format", choices=known, default="text", help=words)


def add_source(parser: Parser) -> None:
    """The model that is right."""
    parser["models"].add_argument("source", metavar="ORIGINAL", help="The original model; it counts as right.")


def add_model(parser: Parser) -> None:
    """The model of a verb that takes one."""
    parser["models"].add_argument("model", metavar="MODEL", help="Model file, or SavedModel folder.")


def add_options(parser: Parser, verb: type[Options], *, required: Collection[str] = ()) -> None:
    """Declare all options that a shell has of a verb.

    Args:
        parser: Of the verb.
        verb: Its options.
        required: Those that only Python may leave out.
    """
    for name, about, default in verb.declared():
        if about.flag:
            flags = [*([_SHORT[name]] if name in _SHORT else []), about.flag]
            words = verb.meaning(name, flags=True).replace("%", "%%")
            action = parser[about.group].add_argument(
                *flags, dest=name, help=words, **_taken(about, default, name in required or default is MISSING)
            )
            if about.seldom:
                parser.seldom.append(action)


def _taken(about: About, default: Any, required: bool) -> dict[str, Any]:
    """What argparse is told of an option's value."""
    value = about.value
    if value.parsed is True:
        return {"action": "store_false" if default else "store_true"}
    action: Any = "append" if value.many else _Given if about.searches else "store"
    told = {"action": action, "type": value.parsed, "default": [] if default == () else default, "required": required}
    if value.choices:
        return told | {"choices": value.choices}
    return told | {"metavar": value.metavar, "default": None if default is MISSING else told["default"]}
