"""What the verb `config` does: check a configuration, translate an older one, or print the schema."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path

from conrepair.application.cli.next_step import command, tell_next
from conrepair.application.config.load import parse_config, read_json
from conrepair.application.config.older import KeyOutcome, Translation, older_form
from conrepair.application.config.read import account_lines, moved, read_any, runnable_config
from conrepair.application.config.schema import json_schema
from conrepair.application.pipeline.config_check import problems_of_parts, problems_of_run
from conrepair.application.pipeline.from_config import active_models, check_converters
from conrepair.ground.runtime.errors import ConfigError, ExitCode, UsageError
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.whole import write_json
from conrepair.ground.runtime.path_text import real_path
from conrepair.ground.runtime.shown.progress import say


def config(options: argparse.Namespace) -> int:
    """Check a configuration, rewrite one of the older form, or print the schema; the exit code."""
    if options.action == "schema":
        return _schema(options)
    if options.config is None:
        raise UsageError(f"config {options.action}: name the configuration's file.")
    return _migrate(options) if options.action == "migrate" else _check(options)


def _schema(options: argparse.Namespace) -> int:
    """Print the JSON Schema of configurations, or write it."""
    if options.config is not None:
        raise UsageError("config schema takes no configuration. To write the schema to a file: -o FILE")
    if options.output is None:
        say(json.dumps(json_schema(), indent=2))
        return int(ExitCode.EQUIVALENT)
    file = Path(options.output)
    output = Output(file.absolute(), "schema", beside=True)
    output.check(force=options.force)
    with output.write() as temporary:
        write_json(temporary, json_schema())
    say(f"written: {file}")
    tell_next(f'write `"$schema": "{file.name}"` into a configuration beside it, and editors complete its keys')
    return int(ExitCode.EQUIVALENT)


def _check(options: argparse.Namespace) -> int:
    """Say whether a configuration is right, and what becomes of one of the older form.

    Returns:
        0; 1 when something that an older one asks for isn't done.

    Raises:
        ConfigError: if it's wrong, or a run would refuse something of it; names everything that is wrong.
    """
    path = Path(options.config)
    base = path.absolute().parent
    try:
        loaded = read_any(path)
        parsed = runnable_config(path, loaded)
    except ConfigError as error:
        raise ConfigError("\n".join([str(error), *_indented(_parts(path, base))])) from error
    if problems := problems_of_run(parsed, base, older=loaded.translation is not None):
        if loaded.translation is not None and options.format == "text":
            say("\n".join([f"{path}: a configuration of ConRepAIr", *account_lines(loaded.translation)]))
        raise ConfigError("\n".join([f"{path}: it can't be run as it is:", *_indented(problems)]))
    count = len(active_models(parsed.models))
    form = "a configuration" if loaded.translation is None else "a configuration of ConRepAIr"
    lists = f", {len(parsed.architectures)} lists of architectures" if parsed.architectures else ""
    networks = "".join(f", a section `{name}`" for name, _, _ in parsed.asked)
    told = f"{path}: {form} that can be run; models: {count} of {len(parsed.models)}{lists}{networks}"
    _show(options, told, loaded.translation)
    if options.format == "text":
        if (named := parsed.schema_) and "://" not in named and not (base / named).exists():
            write = command("config", "schema", "-o", base / named)
            say(f"note: there is no file {named}, which $schema names for editors: {write} writes it")
        tell_next(f"{command('run', options.config)} runs it")
    return _exit_code(loaded.translation)


def _parts(path: Path, base: Path) -> list[str]:
    """What is wrong besides with a file that doesn't fit the schema."""
    try:
        value = read_json(path)
    except ConfigError:
        return []
    return [] if older_form(value) is not None else problems_of_parts(value, base)


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _migrate(options: argparse.Namespace) -> int:
    """Write a configuration of the older form as ours.

    Returns:
        0; 1 when it's written, and something that it asks for isn't done.

    Raises:
        UsageError: if there's nothing to write, or no place for it.
    """
    old = Path(options.config)
    if options.output is None:
        raise UsageError("config migrate: name the file to write (-o NEW.json)")
    new = Path(options.output)
    translation = read_any(old).translation
    if translation is None:
        raise ConfigError(f"{old} is a configuration of conrepair already: there is nothing to migrate")
    if translation.value is None:
        lines = "\n".join(account_lines(translation, (KeyOutcome.REFUSED,), count=False))
        raise ConfigError(f"{old}: none of its models is available, so there is nothing to write:\n{lines}")
    _check_output(old, new, force=options.force)
    value = moved(translation.value, old.absolute().parent, new.absolute().parent)
    check_converters(parse_config(value, str(new)))
    with _output(new).write() as temporary:
        write_json(temporary, value)
    _show(options, f"{new}: written from {old}", translation)
    if options.format == "text":
        tell_next(f"{command('run', options.output)} runs it")
    return _exit_code(translation)


def _check_output(old: Path, new: Path, *, force: bool) -> None:
    if real_path(new) == real_path(old):
        raise UsageError(f"{new} is the configuration that is read. Give another file to write (-o)")
    if new.is_dir():
        raise UsageError(f"{new} is a folder. Give a file")
    if os.path.lexists(new) and not force:
        raise UsageError(f"{new} exists. Give another file, or --force to replace it")
    _output(new).check()


def _output(path: Path) -> Output:
    return Output(path, "migration", beside=True)


def _exit_code(translation: Translation | None) -> int:
    refused = translation is not None and translation.refused
    return int(ExitCode.DIFFERENT if refused else ExitCode.EQUIVALENT)


def _show(options: argparse.Namespace, headline: str, translation: Translation | None) -> None:
    entries = () if translation is None else translation.entries
    if options.format == "json":
        value = {"about": headline, "keys": [dataclasses.asdict(entry) for entry in entries]}
        say(json.dumps(value, indent=2, ensure_ascii=False))
        return
    lines = [] if translation is None else account_lines(translation)
    say("\n".join([headline, *lines]))
