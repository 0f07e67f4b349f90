"""The command line. Verbs import what they need when they run, so that --help answers at once."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from collections.abc import Sequence

from conrepair import __version__
from conrepair.runtime.errors import ConrepairError, ExitCode
from conrepair.runtime.libraries import missing_library

__all__ = ["main"]

_EPILOG = """exit codes: 0 equivalent, 1 a difference or fault was found, 2 usage or configuration,
3 a model can't be loaded, 4 a conversion or an execution failed, 130 interrupted"""


def main(arguments: Sequence[str] | None = None, *, default_config: str = "config.json") -> int:
    """Run a command.

    Args:
        arguments: Default: those of the process.
        default_config: What `run` runs when no configuration is named.

    Returns:
        The process's exit code.
    """
    parser = _parser(default_config)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    try:
        return int(options.run(options))
    except ConrepairError as error:
        sys.stderr.write(f"conrepair: {error}\n")
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
            sys.stderr.write(f"conrepair: {missing}\n")
            return int(missing.exit_code)
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("conrepair"):
            sys.stderr.write(
                f"conrepair: the library {error.name} isn't installed for {sys.executable}. Install conrepair there "
                "(pip install conrepair); in a checkout run `make setup` and use .venv/bin/conrepair.\n"
            )
            return int(ExitCode.USAGE)
        traceback.print_exc()
        sys.stderr.write(
            "conrepair: this is a fault of conrepair, not yours; please report it with the lines above\n"
        )
        return int(ExitCode.EXECUTION)


def _parser(default_config: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="conrepair",
        description="Audit what happens to a neural network when it changes its representation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"conrepair {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_run(verbs, default_config)
    _add_compare(verbs)
    _add_localize(verbs)
    _add_repair(verbs)
    _add_architectures(verbs)
    _add_matrix(verbs)
    _add_converters(verbs)
    _add_convert(verbs)
    _add_build(verbs)
    _add_execute(verbs)
    _add_inspect(verbs)
    _add_config(verbs)
    _add_doctor(verbs)
    _add_environments(verbs)
    return parser


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, about: str
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(
        name,
        help=about,
        description=about,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    parser.set_defaults(keeps=True)  # whether finished steps of a run that is interrupted are kept
    return parser


def _add_data(parser: argparse.ArgumentParser, *, samples: int) -> None:
    parser.add_argument("--data", help="folder of photos, or .npz/.npy (default: synthetic inputs)")
    parser.add_argument(
        "--recipe", help="preprocessing of photos: torchvision, keras:tf, tflite, ..., or a recipe.json"
    )
    parser.add_argument("--samples", type=int, default=samples, help="number of synthetic inputs")
    parser.add_argument("--seed", type=int, default=0, help="of synthetic inputs")
    parser.add_argument("--low", type=float, help="lower end of synthetic inputs (what the files say, or -1)")
    parser.add_argument("--high", type=float, help="upper end of synthetic inputs (what the files say, or 1)")


def _add_target_recipe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target-recipe", help="preprocessing of photos for the target, where it isn't --recipe")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]batch,3,224,224[:dtype]",
        help="an input of a model whose file doesn't say it; may be repeated",
    )


def _add_layers(parser: argparse.ArgumentParser, *, samples: int) -> None:
    """What every command takes that looks at each layer."""
    _add_data(parser, samples=samples)
    _add_target_recipe(parser)
    _add_inputs(parser)
    parser.add_argument("--batch-size", type=int, default=4, help="for models that leave it open")
    parser.add_argument("--margin", type=float, help="a fault is so many times the noise floor (default 10)")
    parser.add_argument(
        "--latent",
        action="store_true",
        help="Faults that no input shows count as others do (default: they're named).",
    )
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each model")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")


def _add_run(verbs: argparse._SubParsersAction[argparse.ArgumentParser], default_config: str) -> None:
    parser = _verb(verbs, "run", "Run the audit that a configuration file describes.")
    parser.add_argument("config", nargs="?", default=default_config, help="JSON file (default: %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="reuse nothing from earlier runs")
    parser.add_argument("-o", "--output", help="folder of all outputs (default: the configuration's)")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.commands import run_config

        return run_config(options.config, fresh=options.fresh, output=options.output, quiet=options.quiet)

    parser.set_defaults(run=run)


def _add_compare(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "compare", "Compare a model with a conversion of it; needs no configuration.")
    parser.add_argument("source", help="the model that is right")
    parser.add_argument("target", help="its conversion")
    parser.add_argument("--rtol", type=float, help="relative tolerance (default 1e-4)")
    parser.add_argument("--atol", type=float, help="absolute tolerance (default 1e-5)")
    _add_data(parser, samples=32)
    _add_target_recipe(parser)
    _add_inputs(parser)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("-o", "--output", default="generated", help="folder of all outputs")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.commands import compare

        return compare(options)

    parser.set_defaults(run=run)


def _add_repair(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "Mend a conversion with the smallest change, in its own format; needs no configuration and no data."
    parser = _verb(verbs, "repair", about)
    parser.add_argument("source", help="the model that is right (with --apply, the model or the build to change)")
    parser.add_argument("target", nargs="?", help="its conversion, or a folder that `build` wrote")
    parser.add_argument("--apply", metavar="PATCH", help="make the edits of a patch.json again")
    _add_layers(parser, samples=72)
    parser.add_argument("--seconds", type=float, default=300.0, help="after which no further edit is tried")
    parser.add_argument("--advice", type=float, default=60.0, help="seconds to try other ways to convert the source")
    parser.add_argument(
        "--bake-recipe",
        action="store_true",
        help="where photos must be prepared otherwise, let operators in front of the model's input do that",
    )
    parser.add_argument("-o", "--output", required=True, help="folder to write; not made where nothing was wrong")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.repair_command import repair

        return repair(options)

    parser.set_defaults(run=run, keeps=False)


def _add_localize(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "Name the layers in which a conversion stops being its source; needs no configuration and no data."
    parser = _verb(verbs, "localize", about)
    parser.add_argument("source", help="the model that is right")
    parser.add_argument("target", help="its conversion, or a folder that `build` wrote")
    parser.add_argument(
        "--intermediate",
        action="append",
        default=[],
        metavar="FILE",
        help="a model on the way from the source to the target, in order; may be repeated",
    )
    _add_layers(parser, samples=32)
    parser.add_argument("-o", "--output", required=True, help="folder to write")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.localize_command import localize

        return localize(options)

    parser.set_defaults(run=run, keeps=False)


def _add_architectures(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "architectures", "Audit many architectures, with random weights, one after the other.")
    parser.add_argument("--list", action="store_true", help="print what there is, and what inputs it takes")
    parser.add_argument(
        "--family", action="append", choices=("torchvision", "keras"), help="may be repeated (default: both)"
    )
    parser.add_argument("--names", nargs="+", default=["*"], help="names or patterns (default: all)")
    parser.add_argument("--exclude", nargs="+", default=[], help="names or patterns to leave out")
    parser.add_argument("--size", type=int, default=64, help="height and width (default 64), where that's enough")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    parser.add_argument("--to", action="append", default=[], help="format to convert to; may be repeated (onnx)")
    parser.add_argument("--via", action="append", default=[], help="converters, separated by commas; may be repeated")
    parser.add_argument("--workers", type=int, default=2, help="conversions side by side")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each conversion and execution")
    parser.add_argument(
        "--memory-gb", type=float, help="bound for each worker (default: its share of this machine's)"
    )
    parser.add_argument("--keep-models", action="store_true", help="keep the files of models that are evaluated")
    parser.add_argument("--fresh", action="store_true", help="reuse nothing from earlier runs")
    parser.add_argument("--name", default="architectures", help="of the audit")
    parser.add_argument("-o", "--output", default="generated", help="folder of all outputs")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.architectures_command import architectures, list_architectures

        return list_architectures(options) if options.list else architectures(options)

    parser.set_defaults(run=run)


def _add_matrix(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "matrix", "Convert a configuration's models from every format into every other.")
    parser.add_argument("config", help="JSON file; its models, data and limits count, its conversions don't")
    parser.add_argument("-o", "--output", help="Markdown file to write (default: in the run's folder)")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.matrix_command import matrix

        return matrix(options.config, output=options.output, quiet=options.quiet)

    parser.set_defaults(run=run)


def _add_converters(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "converters", "List the converters, from which formats to which, and their options.")

    def run(_: argparse.Namespace) -> int:
        from conrepair.converters.listing import listing
        from conrepair.runtime.progress import say

        say(listing())
        return 0

    parser.set_defaults(run=run)


def _add_convert(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "convert", "Convert a model to another format.")
    parser.add_argument("model", help="model file or folder")
    parser.add_argument("--to", required=True, help="torch, keras, tensorflow, tflite or onnx")
    parser.add_argument("--via", help="converters to use, separated by commas (default: the best route)")
    parser.add_argument("-o", "--output", required=True, help="file or folder to write")
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each step")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="CONVERTER.NAME=VALUE",
        help="an option of a converter, as in keras-tflite.quantize=int8; may be repeated",
    )
    parser.add_argument("--no-check", dest="check", action="store_false", help="don't compare with the source")
    parser.add_argument("--no-repair", dest="repair", action="store_false", help="fail where the route fails")
    parser.add_argument("--seconds", type=float, default=120.0, help="to find another way where the route fails")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")
    _add_data(parser, samples=8)
    _add_inputs(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.convert_command import convert

        return convert(options)

    parser.set_defaults(run=run, keeps=False)


def _add_tvm(parser: argparse.ArgumentParser) -> None:
    """How TVM compiles."""
    parser.add_argument("--target", default="llvm", help='llvm, opencl, cuda, with attributes: "llvm -mcpu=native"')
    parser.add_argument("--opt", default="O2", choices=("O0", "O1", "O2", "O3", "tuned"), help="default %(default)s")
    parser.add_argument("--importer", choices=("onnx", "torch", "tflite"), help="convert to that format first")
    parser.add_argument("--required-pass", action="append", default=[], metavar="PASS", help="may be repeated")
    parser.add_argument("--disabled-pass", action="append", default=[], metavar="PASS", help="may be repeated")
    parser.add_argument("--trials", type=int, default=64, help="for tuned: candidates to measure")
    parser.add_argument("--database", help="for tuned: folder of an earlier tuning to start from")
    parser.add_argument("--threads", type=int, help="that a kernel may use")
    parser.add_argument("--unfused", action="append", default=[], metavar="OPERATOR", help="keep it out of fusion")
    parser.add_argument("--unscheduled", action="append", default=[], metavar="OPERATOR", help="no schedule (CPU)")
    parser.add_argument("--debug", action="store_true", help="keep each kernel's results, and the imported model")
    parser.add_argument("--batch-size", type=int, default=1, help="for models that leave it open")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each step")
    parser.add_argument("--force", action="store_true", help="replace the output if it's one of this command")


def _add_build(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "Compile a model with TVM; writes the module, Relax after optimization, and the generated code."
    parser = _verb(verbs, "build", about)
    parser.add_argument("model", help="model file or folder")
    parser.add_argument("-o", "--output", help="folder to write")
    parser.add_argument("--explain", action="store_true", help="list the passes in order, and compile nothing")
    _add_tvm(parser)
    _add_inputs(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.build_command import build

        return build(options)

    parser.set_defaults(run=run, keeps=False)


def _add_execute(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "execute", "Run a model on a backend and keep its outputs; needs no configuration.")
    parser.add_argument("model", help="model file or folder")
    parser.add_argument("--backend", default="libraries", choices=("libraries", "onnxruntime", "tvm"))
    parser.add_argument("-o", "--output", required=True, help="folder to write")
    parser.add_argument(
        "--device", default="local", help="for tvm: local, rpc://HOST:PORT/KEY, tracker://HOST:PORT/KEY"
    )
    _add_tvm(parser)
    _add_data(parser, samples=8)
    _add_inputs(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.execute_command import execute

        return execute(options)

    parser.set_defaults(run=run, keeps=False)


def _add_inspect(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "inspect", "Say what a model consists of.")
    parser.add_argument("model", help="model file or folder")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")
    _add_inputs(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.inspect_command import inspect

        return inspect(options)

    parser.set_defaults(run=run)


def _add_config(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "config", "Check a configuration, or write an older tool's (ConRepAIr, FetaFix) as ours.")
    parser.add_argument("action", choices=("check", "migrate"))
    parser.add_argument("config", help="JSON file")
    parser.add_argument("-o", "--output", help="for migrate: file to write")
    parser.add_argument("--force", action="store_true", help="for migrate: replace the file if it exists")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.config_command import check_config, migrate_config

        return migrate_config(options) if options.action == "migrate" else check_config(options)

    parser.set_defaults(run=run, keeps=False)


def _add_doctor(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _verb(verbs, "doctor", "Say what works here, and what to do about the rest.")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.doctor import doctor

        return doctor(as_json=options.format == "json", quiet=options.quiet)

    parser.set_defaults(run=run)


def _add_environments(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "List, make or remove the environments of converters that can't share ours."
    parser = _verb(verbs, "environments", about)
    parser.add_argument("action", nargs="?", choices=("list", "make", "remove"), default="list")
    parser.add_argument("name", nargs="?", help="of an environment, for make and remove")

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.environments import environments

        return environments(options.action, options.name, quiet=options.quiet)

    parser.set_defaults(run=run)
