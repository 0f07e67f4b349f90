"""Verbs of whole audits."""

from __future__ import annotations

from conrepair.application.cli.parser import Catalogue, Parser
from conrepair.application.cli.shared import add_baseline, add_engine, add_force, add_format, add_output, add_timeout
from conrepair.application.verbs.numbers import count, real, seconds, seed
from conrepair.application.verbs.options import Localize

VERBS = Catalogue()


@VERBS.verb(
    "[CONFIG] [OPTIONS]",
    runs="audit:run_config",
    examples=[
        ("conrepair run release-7.json", "run it, reusing what hasn't changed"),
        ("conrepair run release-7.json --fresh -o /tmp/audit", "reuse nothing, write elsewhere"),
    ],
)
def run(parser: Parser) -> None:
    """Run the audit that a configuration describes.

    Run the audit that a configuration file describes: build, convert, execute and compare its models, and localize
    and repair what differs, if it says so. Finished steps are kept, and reused by the next run.
    """
    parser["models"].add_argument("config", metavar="CONFIG", nargs="?", help="JSON file (default: %(default)s).")
    parser["search"].add_argument("--fresh", action="store_true", help="Reuse nothing from earlier runs.")
    add_baseline(parser)
    add_output(parser, "Folder of all outputs (default: the configuration's).")
    add_format(parser, "text", "github")
    add_engine(parser)


@VERBS.verb(
    "RUN [RUN_B] [OPTIONS]",
    keeps=False,
    examples=[
        ("conrepair report findings", "make the page and all files again"),
        (
            "conrepair report findings --margin 30 -o looser",
            "which layers add more than 30 times the rounding error?",
        ),
        ("conrepair report release-6 release-7 -o changes", "what got better, what got worse?"),
    ],
)
def report(parser: Parser) -> None:
    """Make the report of a saved run again, or compare two runs.

    Make the page and all files of a saved run again, without running a model; with other thresholds, if asked, as far
    as the saved figures allow it. The exit code is that of the run as it's judged now. With two runs, say what got
    better, got worse, is new or is gone; the exit code is 1 if something got worse.
    """
    parser["models"].add_argument(
        "runs", metavar="PATH", nargs="+", help="Folder that a run wrote, or its result.json. Two are compared."
    )
    parser["inputs"].add_argument(
        "--data",
        metavar="FOLDER",
        help="Folder of the photos, to show them (default: no photos are shown).",
    )
    as_ever = ("margin", "rtol", "atol")
    words = {name: Localize.meaning(name, flags=True).partition(" (default: ")[0] for name in as_ever}
    words["relative-l2"] = "Relative error that an output as a whole may have; none with --rtol or --atol"
    for name, told in words.items():
        parser["tolerances"].add_argument(f"--{name}", type=real, metavar="X", help=f"{told} (default: the run's).")
    add_baseline(parser)
    add_output(
        parser, "Write to FOLDER (default: the folder of the run, the second of two; its result.json isn't changed)."
    )
    add_format(parser, "text", "json", "github")


@VERBS.verb(
    "[OPTIONS]",
    examples=[
        ('conrepair architectures --family keras --names "ResNet*" --to tflite', "Keras' ResNets to TFLite"),
        ("conrepair architectures --list", "list what there is"),
    ],
)
def architectures(parser: Parser) -> None:
    """Audit many architectures of torchvision and Keras.

    Build architectures of torchvision and keras.applications with random weights, convert each, and compare the
    results, one after the other.
    """
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
        "--workers", type=count, default=2, metavar="N", help="Jobs side by side (default: %(default)s)."
    )
    parser["search"].add_argument(
        "--each",
        type=seconds,
        default=600.0,
        metavar="S",
        help="Time limit in seconds for each conversion and execution (default: %(default)g).",
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
    add_output(parser, "Folder of all outputs (default: %(default)s).", default="generated")
    add_format(parser)
    add_timeout(parser)


@VERBS.verb(
    "{check,migrate,schema} [CONFIG] [OPTIONS]",
    keeps=False,
    examples=[
        ("conrepair config check release-7.json", "say what's wrong in it, if anything"),
        ("conrepair config migrate old.json -o new.json", "rewrite a configuration of ConRepAIr"),
        ("conrepair config schema -o conrepair.schema.json", 'for editors: name it in "$schema"'),
    ],
)
def config(parser: Parser) -> None:
    """Check a configuration, migrate an older tool's, or print the schema.

    check: say what is wrong in a configuration, without running it. migrate: rewrite a configuration of ConRepAIr or
    FetaFix. schema: print the JSON Schema, or write it (-o) for editors.
    """
    parser["models"].add_argument("action", choices=("check", "migrate", "schema"), help="What to do.")
    parser["models"].add_argument("config", metavar="CONFIG", nargs="?", help="JSON file, for check and migrate.")
    add_output(parser, "File to write, for migrate and schema (default: the schema is printed).", metavar="FILE")
    add_force(parser)
    add_format(parser)
