"""What the command line declares: help, examples, defaults, wrong use, and its reference in docs/."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import re
import shlex
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import conrepair
from conrepair.application.cli import main
from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import Parser
from conrepair.application.cli.reference import verbs_in_short
from conrepair.application.config.model import AuditConfig
from conrepair.application.verbs.option import Options, options
from conrepair.application.verbs.options import Build, Compare, Convert, Execute, Inputs, Inspect, Localize, Repair
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair_lab.generate.wishes import Wishes
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.options.generate import Generate, Networks, OneByOne
from conrepair_lab.sections import GenerateConfig

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "command-line.md"


def verbs() -> dict[str, Parser]:
    (action,) = (item for item in command_line()._actions if isinstance(item, argparse._SubParsersAction))
    return action.choices


VERBS = verbs()


def save(name: str, factor: float = 1.0) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 3] y) { y = MatMul (x, w) }'
    model = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(factor * weight, "w"))
    onnx.save(model, name)


@pytest.mark.parametrize("verb", VERBS)
def test_what_a_verb_runs_is_there(verb: str) -> None:
    module, _, function = VERBS[verb].get_default("command").partition(":")
    takes = inspect.signature(getattr(importlib.import_module(module), function)).parameters.values()
    assert [item.annotation for item in takes] == ["argparse.Namespace"]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save("net.onnx")
    save("scaled.onnx", 2.0)
    return tmp_path


def shown(page: Path) -> list[str]:
    """The commands in a page's blocks of code, without the usage lines of the page that is made of the parser."""
    blocks = re.findall(r"```\w*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = re.compile(r"(?:\$ )?(?:\.venv/bin/)?(conrepair [a-z].*)")
    return [match[1] for match in map(found.fullmatch, lines) if match and "OPTIONS]" not in match[1]]


COMMANDS = [
    pytest.param(command, id=f"{page.stem}: {command[:60]}")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for command in shown(page)
]


def check_parses(command: str) -> argparse.Namespace:
    program, *words = shlex.split(command, comments=True)
    assert program == "conrepair"
    words = words[: words.index(">")] if ">" in words else words  # the rest is the shell's
    options, rest = command_line().parse_known_args(words)
    assert not rest
    return options


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_pages_parse(command: str) -> None:
    check_parses(command)


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        ("repair a.onnx -q b.onnx", ["b.onnx"]),
        ("repair a.onnx b.onnx --seconds 9 c.onnx", ["b.onnx", "c.onnx"]),
        ("localize -q a.onnx --samples 3 b.onnx --intermediate m.onnx c.onnx", ["b.onnx", "c.onnx"]),
        ("repair a.onnx --apply patch.json", []),
    ],
)
def test_options_may_stand_between_models(words: str, targets: list[str]) -> None:
    options = check_parses(f"conrepair {words}")
    assert (options.source, options.targets) == ("a.onnx", targets)


def test_commands_are_found_in_pages() -> None:
    assert len(shown(ROOT / "README.md")) >= 6
    assert len(shown(ROOT / "docs" / "tvm.md")) >= 5


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_has_examples_that_parse_and_whole_sentences(name: str) -> None:
    parser = VERBS[name]
    assert parser.examples
    for example in parser.examples:
        assert check_parses(example).parser.prog == parser.prog
    for action in parser._actions:
        assert action.help, action.dest
        assert action.help[0].isupper(), action.help
        assert action.help.endswith((".", ").")), action.help


LONG = [name for name, verb in VERBS.items() if len(verb.seldom) >= 4]


def _is_short(option: str) -> bool:
    return not option.startswith("--")


@pytest.mark.parametrize("name", LONG)
def test_a_long_help_explains_what_most_need_and_names_the_rest(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a screen; with `--help-all` all of it, also of options that every verb has."""
    monkeypatch.setenv("COLUMNS", "100")
    told = {}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            main([name, flag])
        assert ended.value.code == 0
        told[flag] = capsys.readouterr().out
    short, whole = told["--help"], told["--help-all"]
    assert len(short.splitlines()) <= min(65, len(whole.splitlines()))
    typed = [min(action.option_strings, key=_is_short) for action in VERBS[name]._actions if action.option_strings]
    rare = [action.option_strings[-1] for action in VERBS[name].seldom]
    assert (
        f"{len(rare)} more options, with their meaning in `conrepair {name} --help-all`: {', '.join(rare)}"
        in " ".join(short.split())
    )
    explained = {flag: set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", told[flag], re.MULTILINE)) for flag in told}
    assert set(typed) <= explained["--help-all"]
    assert explained["--help"] >= set(typed) - set(rare)
    assert not explained["--help"] & set(rare)
    assert "more options" not in whole


def test_a_short_help_explains_all_options() -> None:
    few = set(VERBS) - set(LONG)
    assert few
    for name in few:
        assert "more options" not in VERBS[name].format_help()
        assert "--timings" in VERBS[name].format_help()


def test_seldom_used_options_exist() -> None:
    """Names that a class calls so are names of its own options, of each class that has some."""
    assert {name for name, about, _ in Fuzz.declared() if about.seldom} >= {"opset", "alone", "reduction_seconds"}
    with pytest.raises(KeyError, match="speed"):
        options("search", seldom="speed")(type("Verb", (Options,), {}))


def test_the_page_in_docs_is_made_of_the_parser() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == verbs_in_short(command_line()), "python -m conrepair.application.cli.reference"
    assert all(f"| `{verb}` | " in page for verb in VERBS)


def setting_of(key: str) -> Any:
    """The default of what a configuration calls so."""
    section, name = key.split(".")
    return AuditConfig.with_parts(["generate"]).model_validate({"generate": {}}).model_dump()[section][name]


MODELS = [Build, Compare, Convert, Execute, Inputs, Inspect, Localize, Repair]


@pytest.mark.parametrize(
    ("verb", "function"), [*((verb, verb.__name__.lower()) for verb in MODELS), (OneByOne, "generated")]
)
def test_a_function_of_python_has_each_option_of_its_verb(verb: type[Options], function: str) -> None:
    """With its default, its words and its place."""
    called = inspect.signature(getattr(conrepair, function)).parameters
    for option, _, default in verb.declared():
        assert called[option].default == (inspect.Parameter.empty if default is MISSING else default)
        assert f"    {option}: {verb.meaning(option, flags=False)}" in getattr(conrepair, function).__doc__
    by_place = {item.name for item in dataclasses.fields(verb) if not item.kw_only}
    assert {key for key, item in called.items() if item.kind is not inspect.Parameter.KEYWORD_ONLY} == by_place
    assert set(called) == {item.name for item in dataclasses.fields(verb)}


@pytest.mark.parametrize("verb", [*MODELS, Generate])
def test_a_shell_and_a_configuration_have_each_option_of_a_verb(verb: type[Options]) -> None:
    """With its words and one default."""
    typed = {flag: action for action in VERBS[verb.__name__.lower()]._actions for flag in action.option_strings}
    for option, about, default in verb.declared():
        if about.flag:
            action = typed[about.flag]
            given = tuple(action.default) if isinstance(action.default, list) else action.default
            assert (action.dest, given) == (option, None if default is MISSING else default)
            assert (action.help or "").replace("%%", "%") == verb.meaning(option, flags=True)
        if about.key:
            usual = getattr(Tolerance, option, default)
            nothing = {} if option in {"forms", "patterns"} else None
            assert setting_of(about.key) == (nothing if usual is None else usual), about.key


def test_a_configuration_has_each_option_of_networks() -> None:
    own = {name for name, about, _ in Generate.declared() if about.key == f"generate.{name}"}
    assert set(GenerateConfig.model_fields) == own | {"folder"}
    assert own >= {name for name, _, _ in Networks.declared()}
    assert Networks().wishes == Wishes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: conrepair VERB"),
        (["localise", "a", "b"], "'localise' isn't known; did you mean 'localize'?"),
        (["config", "chekc", "c.json"], "did you mean 'check'?"),
        (["localize", "net.onnx"], "required: CONVERTED"),
        (["localize", "net.onnx", "scaled.onnx", "--smaples", "3"], "no option --smaples; did you mean '--samples'?"),
        (["compare", "net.onnx", "scaled.onnx", "third.onnx"], "nothing that would take third.onnx"),
        (["localize", "build", "net.onnx"], "A build can only be the converted model: swap the two"),
    ],
)
def test_wrong_use(room: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "build").mkdir()
    (room / "build" / "build.json").write_text("{}")
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "net.onnx", "scaeld.onnx"], "scaeld.onnx: no such file or folder; did you mean 'scaled.onnx'?"),
        (["localize", "net.onnx", "scaled.onnx", "--intermediate", "none"], "none: no such file or folder"),
        (["repair", "net.onnx", "--apply", "patch.json"], "patch.json: no such file or folder"),
    ],
)
@pytest.mark.usefixtures("room")
def test_what_is_not_there(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 3
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["compare", "localize"])
def test_nothing_is_written_where_nobody_asks_for_it(
    room: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(room.iterdir())
    assert main([verb, "net.onnx", "scaled.onnx", "-q"]) == 1
    out = capsys.readouterr().out
    assert "faulty" in out
    assert "Files:" not in out
    assert sorted(room.iterdir()) == before


def test_outputs_of_a_model_are_shown_where_they_are_not_kept(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(room.iterdir())
    assert main(["execute", "net.onnx", "-q"]) == 0
    assert "y: float32[8, 3] in [" in capsys.readouterr().out
    assert sorted(room.iterdir()) == before


def test_a_repair_goes_to_a_folder_of_the_targets_name(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", "net.onnx", "scaled.onnx", "-q"]) == 0
    assert (room / "scaled-repaired" / "repaired.onnx").is_file()
    assert str(room / "scaled-repaired") in capsys.readouterr().out
