"""The command line's entry: parse, run a verb, say what went wrong."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
import traceback
from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path

from conrepair import __version__
from conrepair.application.cli import audit_verbs, machine_verbs, model_verbs
from conrepair.application.cli.parser import Catalogue, Parser, check_paths, check_rest
from conrepair.application.cli.shared import time_limit
from conrepair.application.cli.surroundings import check_surroundings, refused_by_system
from conrepair.ground.runtime.errors import ConrepairError, ExitCode, ModelLoadError
from conrepair.ground.runtime.invocation import invoked_by
from conrepair.ground.runtime.libraries import missing_library
from conrepair.ground.runtime.plugins import Registry, named
from conrepair.ground.runtime.processes.deadline import TimeIsUp, ends_after
from conrepair.ground.runtime.shown.heartbeat import at_work, heartbeat
from conrepair.ground.runtime.shown.streams import Streams, standard_streams
from conrepair.ground.runtime.shown.timings import recorded
from conrepair.ground.runtime.words import complain, meant


def main(arguments: Sequence[str] | None = None, *, default_config: str = "config.json") -> int:
    """Run a command.

    Args:
        arguments: Default: those of the process, which is the command's own then: a library that doesn't return in
            time (`--timeout`) ends with it. A process that only calls a command is never ended.
        default_config: What `run` runs when no configuration is named.

    Returns:
        The process's exit code.
    """
    own = arguments is None
    words = sys.argv[1:] if arguments is None else list(arguments)
    with standard_streams() as streams:
        ended: int | SystemExit
        try:
            ended = copy_context().run(_command, words, default_config, streams, own=own)
        except SystemExit as exit_:  # help was wanted, or a word is wrong
            ended = exit_
        if problem := streams.problem:
            complain(f"conrepair: {problem}")
            return int(ExitCode.EXECUTION)
    if isinstance(ended, SystemExit):
        raise ended
    return ended


def _command(words: list[str], default_config: str, streams: Streams, *, own: bool) -> int:
    """Run a command, and say how it ended where it doesn't say so itself; its exit code."""
    if words[:1] == ["help"]:  # `help VERB`
        words = [*words[1:], "--help"]
    try:
        parser = command_line(default_config, words)
    except ConrepairError as error:  # of a plug-in that was asked for
        complain(f"conrepair: {error}")
        return int(error.exit_code)
    if not words:
        sys.stderr.write(parser.format_help())
        return int(ExitCode.USAGE)
    invoked_by(words)
    options, rest = parser.parse_known_args(words)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    limit, kept = time_limit(options), "; finished steps are kept and reused" if options.keeps else ""
    late = (
        f"conrepair: the command didn't end in {limit or 0:g} s (--timeout), and was stopped at {{}}{kept}. Give it "
        "more time, or less to do."
    )
    try:
        check_surroundings()
        with (
            heartbeat(lambda: streams.spoke, wanted=not options.quiet),
            at_work(words[0]),
            ends_after(limit, late.format("a library that doesn't let itself be interrupted") if own else None),
        ):
            check_rest(options, rest)
            check_paths(options)
            _check_files(options)
            return _run(options)
    except ConrepairError as error:
        complain(f"conrepair: {error}")
        return int(error.exit_code)
    except TimeIsUp as up:
        complain(late.format(up))
        return int(ExitCode.EXECUTION)
    except KeyboardInterrupt:
        complain(f"conrepair: interrupted{kept}")
        return int(ExitCode.INTERRUPTED)
    # Our own mistake must not look like "a difference was found", which is what Python's exit code 1 means here.
    except Exception as error:  # noqa: BLE001
        return _unexpected(error)


def _unexpected(error: Exception) -> int:
    """Say what an error means that no verb has foreseen; the exit code."""
    if known := missing_library(error) or refused_by_system(error):
        complain(f"conrepair: {known}")
        return int(known.exit_code)
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("conrepair"):
        complain(
            f"conrepair: the library {error.name} isn't installed for {sys.executable}. Install conrepair there "
            "(pip install conrepair); in a checkout run `make setup` and use .venv/bin/conrepair."
        )
        return int(ExitCode.USAGE)
    complain("".join(traceback.format_exception(error)))
    complain("conrepair: this is a fault of conrepair, not yours; please report it with the lines above")
    return int(ExitCode.EXECUTION)


VERBS: Registry[Catalogue] = Registry(
    "verbs",
    {name: sort.VERBS for sort in (model_verbs, audit_verbs, machine_verbs) for name in sort.VERBS},
    Catalogue,
)
"""The catalogue that each verb stands in."""


def command_line(default_config: str = "config.json", words: Sequence[str] = ()) -> Parser:
    """All verbs; ours alone where one of them is asked for.

    Args:
        default_config: What `run` runs when no configuration is named.
        words: That are to be parsed, as far as they're known.

    Raises:
        ConfigError: if a plug-in's verb is asked for that can't be imported.
    """
    if words and words[0] not in VERBS.own and words[0] in named("verbs"):
        _ = VERBS[words[0]]  # says what's wrong with it
    parser = Parser(
        "conrepair",
        about="Your converted model gives other predictions? Tell whether it's rounding or a bug (compare), find the "
        "layer that's wrong (localize), and fix the file (repair).",
        takes="VERB [OPTIONS]",
        examples=[
            ("conrepair compare model.onnx model.tflite", "do both give the same outputs?"),
            ("conrepair localize model.onnx model.tflite", "which layer is wrong?"),
            ("conrepair repair model.onnx model.tflite", "fix the second file with the smallest change"),
            ("conrepair convert model.keras --to onnx -o model.onnx", "convert, and compare the result"),
        ],
    )
    parser["general"].add_argument(
        "--version", action="version", version=f"conrepair {__version__}", help="Show the version and exit."
    )
    parser.set_defaults(parser=parser)
    verbs = parser.add_subparsers(
        title="verbs",
        metavar="VERB",
        required=True,
        prog="conrepair",
        description="`conrepair help VERB` has its options.",
    )
    for name in VERBS.own if words and words[0] in VERBS.own else VERBS:
        VERBS[name][name](verbs)
    verbs.choices["run"].set_defaults(config=default_config)
    return parser


def _run(options: argparse.Namespace) -> int:
    """The verb; and where its time went, where that's wanted."""
    module, _, function = options.command.partition(":")
    run = getattr(importlib.import_module(module), function)
    if not options.timings:
        return int(run(options))
    with recorded() as timings:
        try:
            return int(run(options))
        finally:
            complain(timings.text())


def _check_files(options: argparse.Namespace) -> None:
    """Say at once which of the models that are named isn't there.

    Raises:
        ModelLoadError: if so, with a name that may have been meant.
    """
    named = [getattr(options, name) for name in options.files]
    for text in [text for value in named for text in (value if isinstance(value, list) else [value]) if text]:
        path = Path(text)
        if not path.exists():
            near = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
            raise ModelLoadError(f"{text}: no such file or folder{meant(path.name, near) or '. Check the path.'}")
