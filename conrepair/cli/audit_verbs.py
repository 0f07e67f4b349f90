"""Verbs of whole audits, and of what's installed here."""

from __future__ import annotations

import argparse

from conrepair.cli.numbers import count, real, seed
from conrepair.cli.parser import Parser, Verbs
from conrepair.cli.shared import add_format, add_quiet, add_timeout

__all__ = ["add_audit_verbs"]


def add_audit_verbs(verbs: Verbs[Parser], default_config: str) -> None:
    """Declare them.

    Args:
        verbs: Where to.
        default_config: What `run` runs when no configuration is named.
    """
    _add_run(verbs, default_config)
    _add_report(verbs)
    _add_architectures(verbs)
    _add_matrix(verbs)
    _add_config(verbs)
    _add_converters(verbs)
    _add_doctor(verbs)
    _add_environments(verbs)
    _add_completion(verbs)


def _add_run(verbs: Verbs[Parser], default_config: str) -> None:
    parser: Parser = verbs.add_parser(
        "run",
        help="Run the audit that a configuration describes.",
        prog="conrepair run",
        about="Run the audit that a configuration file describes: build, convert, execute and compare its models, "
        "and localize and repair what differs, if it says so. Finished steps are kept, and reused by the next "
        "run.",
        takes="[CONFIG] [OPTIONS]",
        examples=[
            ("conrepair run release-7.json", "run it, reusing what hasn't changed"),
            ("conrepair run release-7.json --fresh -o /tmp/audit", "reuse nothing, write elsewhere"),
        ],
    )
    parser["models"].add_argument(
        "config", metavar="CONFIG", nargs="?", default=default_config, help="JSON file (default: %(default)s)."
    )
    parser["search"].add_argument("--fresh", action="store_true", help="Reuse nothing from earlier runs.")
    parser["output"].add_argument(
        "-o", "--output", metavar="FOLDER", help="Folder of all outputs (default: the configuration's)."
    )
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.commands import run_config

        return run_config(options.config, fresh=options.fresh, output=options.output, quiet=options.quiet)

    parser.runs(run)


def _add_report(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "report",
        help="Make the report of a saved run again, or compare two runs.",
        prog="conrepair report",
        about="Make the page and all files of a saved run again, without running a model; with other thresholds, if "
        "asked, as far as what was saved can be judged by them. The exit code is the run's, as it's judged now. "
        "Of two runs it says what got better, worse, new or is gone; the exit code is 1 if something got worse.",
        takes="RUN [RUN_B] [OPTIONS]",
        examples=[
            ("conrepair report findings", "make the page and all files again"),
            ("conrepair report findings --margin 30 -o looser", "who's at fault from 30 times the rounding on?"),
            ("conrepair report release-6 release-7 -o changes", "what got better, what got worse?"),
        ],
    )
    parser["models"].add_argument(
        "runs", metavar="PATH", nargs="+", help="Folder that a run wrote, or its result.json. Two are compared."
    )
    parser["tolerances"].add_argument(
        "--margin",
        type=real,
        metavar="X",
        help="A layer is at fault if its error is X times what rounding explains (default: the run's).",
    )
    parser["tolerances"].add_argument(
        "--rtol", type=real, metavar="X", help="Relative tolerance of each element of an output (default: the run's)."
    )
    parser["tolerances"].add_argument(
        "--atol", type=real, metavar="X", help="Absolute tolerance of each element of an output (default: the run's)."
    )
    parser["tolerances"].add_argument(
        "--relative-l2",
        type=real,
        metavar="X",
        help="Relative error that an output as a whole may have (default: the run's, none with --rtol or --atol).",
    )
    parser["output"].add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Write to FOLDER (default: into the run's own, whose result.json stays as it is; of two, the last's).",
    )
    add_format(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.report_command import report

        return report(options)

    parser.runs(run, keeps=False)


def _add_architectures(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "architectures",
        help="Audit many architectures of torchvision and Keras.",
        prog="conrepair architectures",
        about="Build architectures of torchvision and keras.applications with random weights, convert each, and "
        "compare the results, one after the other.",
        takes="[OPTIONS]",
        examples=[
            ('conrepair architectures --family keras --names "ResNet*" --to tflite', "Keras' ResNets to TFLite"),
            ("conrepair architectures --list", "list what there is"),
        ],
    )
    parser["models"].add_argument(
        "--list", action="store_true", help="List the architectures and the inputs they take, and run nothing."
    )
    parser["models"].add_argument(
        "--family", action="append", choices=("torchvision", "keras"), help="May be repeated (default: both)."
    )
    parser["models"].add_argument(
        "--names", nargs="+", default=["*"], metavar="NAME", help="Names or patterns (default: all)."
    )
    parser["models"].add_argument(
        "--exclude", nargs="+", default=[], metavar="NAME", help="Names or patterns to leave out."
    )
    parser["models"].add_argument(
        "--to",
        action="append",
        default=[],
        metavar="FORMAT",
        help="Format to convert to (default: onnx). Repeat it for several.",
    )
    parser["models"].add_argument(
        "--via",
        action="append",
        default=[],
        metavar="CONVERTERS",
        help="Converters, separated by commas. Repeat it for several routes.",
    )
    parser["inputs"].add_argument(
        "--size",
        type=count,
        default=64,
        metavar="N",
        help="Height and width of the inputs, where the architecture allows it (default: %(default)s).",
    )
    parser["inputs"].add_argument(
        "--seed", type=seed, default=0, metavar="N", help="Seed of the random weights (default: %(default)s)."
    )
    parser["search"].add_argument(
        "--workers", type=count, default=2, metavar="N", help="Conversions in parallel (default: %(default)s)."
    )
    parser["search"].add_argument(
        "--memory-gb",
        type=real,
        metavar="X",
        help="Memory limit of each worker in GiB (default: its share of this machine's).",
    )
    parser["search"].add_argument("--fresh", action="store_true", help="Reuse nothing from earlier runs.")
    parser["output"].add_argument(
        "--keep-models", action="store_true", help="Keep the files of models that have been compared."
    )
    parser["output"].add_argument(
        "--name", default="architectures", metavar="NAME", help="Name of the audit (default: %(default)s)."
    )
    parser["output"].add_argument(
        "-o",
        "--output",
        default="generated",
        metavar="FOLDER",
        help="Folder of all outputs (default: %(default)s).",
    )
    add_format(parser)
    add_timeout(parser, "conversion and execution")
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.architectures_command import architectures, list_architectures

        return list_architectures(options) if options.list else architectures(options)

    parser.runs(run)


def _add_matrix(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "matrix",
        help="Convert models from every format into every other.",
        prog="conrepair matrix",
        about="Convert the models of a configuration from every format into every other, compare each result, and "
        "write the verdicts as a Markdown table. The configuration's own conversions are ignored.",
        takes="CONFIG [OPTIONS]",
        examples=[("conrepair matrix config.json -o routes.md", "write the table to routes.md")],
    )
    parser["models"].add_argument(
        "config", metavar="CONFIG", help="JSON file, of which models, data and limits are used."
    )
    parser["output"].add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="Markdown file to write (default: route-matrix.md in the audit's folder).",
    )
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.matrix_command import matrix

        return matrix(options.config, output=options.output, quiet=options.quiet)

    parser.runs(run)


def _add_config(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "config",
        help="Check a configuration, or migrate one of an older tool.",
        prog="conrepair config",
        about="Check a configuration without running it, or rewrite one of ConRepAIr or FetaFix in our form.",
        takes="{check,migrate} CONFIG [OPTIONS]",
        examples=[
            ("conrepair config check release-7.json", "say what's wrong in it, if anything"),
            ("conrepair config migrate old.json -o new.json", "rewrite ConRepAIr's form"),
        ],
    )
    parser["models"].add_argument("action", choices=("check", "migrate"), help="What to do.")
    parser["models"].add_argument("config", metavar="CONFIG", help="JSON file.")
    parser["output"].add_argument("-o", "--output", metavar="FILE", help="File to write, for migrate.")
    parser["output"].add_argument(
        "--force", action="store_true", help="Replace the file that migrate writes if it exists."
    )
    add_format(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.config_command import check_config, migrate_config

        return migrate_config(options) if options.action == "migrate" else check_config(options)

    parser.runs(run, keeps=False)


def _add_converters(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "converters",
        help="List the converters and their options.",
        prog="conrepair converters",
        about="List the converters, from which format to which each converts, and its options.",
        takes="[OPTIONS]",
        examples=[("conrepair converters", "list them")],
    )
    add_quiet(parser)

    def run(_: argparse.Namespace) -> int:
        from conrepair.converters.listing import listing
        from conrepair.runtime.progress import say

        say(listing())
        return 0

    parser.runs(run)


def _add_doctor(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "doctor",
        help="Check what's installed here, and what to do about the rest.",
        prog="conrepair doctor",
        about="Check the libraries, converters, backends and environments that are installed, and print the command "
        "that installs or fixes each of the others. The exit code is 1 if something that's installed doesn't "
        "work.",
        takes="[OPTIONS]",
        examples=[("conrepair doctor", "try everything that's installed")],
    )
    add_format(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.doctor import doctor

        return doctor(as_json=options.format == "json", quiet=options.quiet)

    parser.runs(run)


def _add_environments(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "environments",
        help="List, make or remove converters' own environments.",
        prog="conrepair environments",
        about="List, make or remove the environments of converters whose versions conflict with ours. They're made "
        "when they're first needed; `make` does that beforehand.",
        takes="[{list,make,remove}] [NAME] [OPTIONS]",
        examples=[
            ("conrepair environments", "list them, with their sizes"),
            ("conrepair environments make onnx2tf", "make one"),
        ],
    )
    parser["models"].add_argument(
        "action", nargs="?", choices=("list", "make", "remove"), default="list", help="What to do (default: list)."
    )
    parser["models"].add_argument("name", metavar="NAME", nargs="?", help="Environment to make or remove.")
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.environments import environments

        return environments(options.action, options.name, quiet=options.quiet)

    parser.runs(run)


def _add_completion(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "completion",
        help="Print a script that completes verbs, options and files in a shell.",
        prog="conrepair completion",
        about="Print a script that completes verbs, options and files in a shell. Bash and zsh read it where their "
        "start-up file evaluates what this prints, fish where it's kept among its completions.",
        takes="{bash,zsh,fish} [OPTIONS]",
        examples=[
            ("conrepair completion bash", 'in ~/.bashrc: eval "$(conrepair completion bash)"'),
            ("conrepair completion zsh", 'in ~/.zshrc, after compinit: eval "$(conrepair completion zsh)"'),
            ("conrepair completion fish", "into ~/.config/fish/completions/conrepair.fish"),
        ],
    )
    parser["models"].add_argument("shell", choices=("bash", "zsh", "fish"), help="The shell that reads it.")
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.completion import completion
        from conrepair.cli.main import command_line
        from conrepair.runtime.progress import say

        say(completion(command_line(), options.shell))
        return 0

    parser.runs(run, keeps=False)
