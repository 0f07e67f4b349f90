"""The command line's entry: parse, run a verb, say what went wrong."""

from __future__ import annotations

import argparse
import io
import logging
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from conrepair import __version__
from conrepair.cli.audit_verbs import add_audit_verbs
from conrepair.cli.generate_verbs import add_generate_verbs
from conrepair.cli.machine_verbs import add_machine_verbs
from conrepair.cli.model_verbs import add_model_verbs
from conrepair.cli.parser import Parser, check_paths, check_rest, nearest
from conrepair.runtime.errors import ConrepairError, ExitCode, ModelLoadError
from conrepair.runtime.invocation import invoked_by
from conrepair.runtime.libraries import missing_library
from conrepair.runtime.timings import recorded
from conrepair.runtime.words import complain

__all__ = ["command_line", "main"]


def main(arguments: Sequence[str] | None = None, *, default_config: str = "config.json") -> int:
    """Run a command.

    Args:
        arguments: Default: those of the process.
        default_config: What `run` runs when no configuration is named.

    Returns:
        The process's exit code.
    """
    parser = command_line(default_config)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words:
        sys.stderr.write(parser.format_help())
        return int(ExitCode.USAGE)
    _print_any_name()
    invoked_by(words)
    options, rest = parser.parse_known_args(words)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    try:
        check_rest(options, rest)
        check_paths(options)
        _check_files(options)
        return _run(options)
    except ConrepairError as error:
        complain(f"conrepair: {error}")
        return int(error.exit_code)
    except BrokenPipeError:
        return int(ExitCode.EXECUTION)
    except KeyboardInterrupt:
        kept = "; finished steps are kept and reused" if options.keeps else ""
        sys.stderr.write(f"conrepair: interrupted{kept}\n")
        return int(ExitCode.INTERRUPTED)
    # Our own mistake must not look like "a difference was found", which is what Python's exit code 1 means here.
    except Exception as error:  # noqa: BLE001
        if missing := missing_library(error):
            complain(f"conrepair: {missing}")
            return int(missing.exit_code)
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("conrepair"):
            sys.stderr.write(
                f"conrepair: the library {error.name} isn't installed for {sys.executable}. Install conrepair there "
                "(pip install conrepair); in a checkout run `make setup` and use .venv/bin/conrepair.\n"
            )
            return int(ExitCode.USAGE)
        complain(traceback.format_exc())
        complain("conrepair: this is a fault of conrepair, not yours; please report it with the lines above")
        return int(ExitCode.EXECUTION)


def command_line(default_config: str = "config.json") -> Parser:
    """All verbs.

    Args:
        default_config: What `run` runs when no configuration is named.
    """
    parser = Parser(
        "conrepair",
        about="Audit what happens to a neural network when it's converted: compare both models' answers, name the "
        "layers at fault, repair the conversion in its own format.",
        takes="VERB [OPTIONS]",
        examples=[
            ("conrepair compare model.onnx model.tflite", "do both give the same answers?"),
            ("conrepair localize model.onnx model.tflite", "which layer is at fault?"),
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
        description="`conrepair VERB --help` says more.",
    )
    add_model_verbs(verbs)
    add_audit_verbs(verbs, default_config)
    add_generate_verbs(verbs)
    add_machine_verbs(verbs)
    return parser


def _print_any_name() -> None:
    """Write what the terminal's encoding lacks, or a name that isn't UTF-8, as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(options: argparse.Namespace) -> int:
    """The verb; and where its time went, where that's wanted."""
    if not getattr(options, "timings", False):
        return int(options.run(options))
    with recorded() as timings:
        try:
            return int(options.run(options))
        finally:
            sys.stderr.write(f"{timings.text()}\n")


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
            raise ModelLoadError(f"{text}: no such file or folder{nearest(path.name, near) or '. Check the path.'}")
