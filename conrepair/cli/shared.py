"""Options that several verbs have."""

from __future__ import annotations

from conrepair.cli.numbers import Samples, count, real, samples, seed
from conrepair.cli.parser import Parser
from conrepair.cli.time_limit import add_timeout

__all__ = ["add_format", "add_inputs", "add_layers", "add_pair", "add_quiet", "add_source", "add_target_recipe"]

TARGET = "The model converted from it, or a folder that `build` wrote."
TARGETS = f"{TARGET} Several are looked at one after the other."


def add_quiet(parser: Parser) -> None:
    """What every verb has that runs something."""
    parser["general"].add_argument("-q", "--quiet", action="store_true", help="Show no progress.")
    parser["general"].add_argument(
        "--timings", action="store_true", help="Show at the end where the time went, job by job (on standard error)."
    )


def add_fresh(parser: Parser) -> None:
    """For verbs whose results are kept in the user's cache."""
    parser["general"].add_argument(
        "--fresh",
        action="store_true",
        help="Take no results from the cache (`conrepair cache`), and replace those that are there.",
    )


def add_format(parser: Parser) -> None:
    """Text or JSON."""
    parser["output"].add_argument(
        "-f",
        "--format",
        choices=("text", "json"),
        default="text",
        help="Print text for people, or JSON for programs (default: %(default)s).",
    )


def add_source(parser: Parser) -> None:
    """The model that is right."""
    parser["models"].add_argument("source", metavar="SOURCE", help="The original model; it's right by definition.")


def add_pair(parser: Parser, target: str = TARGET) -> None:
    """The two models."""
    add_source(parser)
    parser["models"].add_argument("target", metavar="TARGET", help=target)


def add_inputs(parser: Parser, *, drawn: int, of_data: int | None = None) -> None:
    """What models are fed.

    Args:
        parser: Of the verb.
        drawn: How many inputs are drawn by default.
        of_data: How many are taken of data by default; None: all.
    """
    add_declared(parser)
    group = parser["inputs"]
    group.add_argument(
        "--data", metavar="PATH", help="Folder of photos, or .npz/.npy arrays (default: random inputs are drawn)."
    )
    group.add_argument(
        "--recipe",
        metavar="RECIPE",
        help="Preprocessing of photos: torchvision, keras:tf, keras:torch, tflite, ..., or a recipe.json.",
    )
    taken = "" if of_data else ", and all of the data"
    group.add_argument(
        "--samples",
        action=Samples,
        type=samples,
        default=drawn,
        metavar="N",
        help=f"Number of inputs: random ones, or the first of --data (default: %(default)s{taken}).",
    )
    parser.set_defaults(limit=of_data)
    group.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="Seed of random inputs (default: %(default)s)."
    )
    group.add_argument(
        "--low", type=real, metavar="X", help="Lower bound of random inputs (default: the files' own, else -1)."
    )
    group.add_argument(
        "--high", type=real, metavar="X", help="Upper bound of random inputs (default: the files' own, else 1)."
    )


def add_declared(parser: Parser) -> None:
    """What a model's file doesn't say: shapes, and whether it comes from somebody whose programs one would run."""
    parser["models"].add_argument(
        "--trust",
        action="store_true",
        help="Load files that hold code or reach beyond the model: only your own, or those of somebody whose "
        "programs you would run (docs/security.md). Ordinary files need none of it.",
    )
    parser["inputs"].add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]SHAPE[:DTYPE]",
        help="Declare an input that the model's file doesn't describe (TorchScript), as in batch,3,224,224:float32. "
        "Repeat it for each input.",
    )


def add_target_recipe(parser: Parser) -> None:
    """For models that are fed differently."""
    parser["inputs"].add_argument(
        "--target-recipe", metavar="RECIPE", help="Preprocessing for the target, if it isn't the source's."
    )


def add_batch_size(parser: Parser, size: int) -> None:
    """For models whose batch is open."""
    parser["inputs"].add_argument(
        "--batch-size",
        type=count,
        default=size,
        metavar="N",
        help="Batch size for models with an open batch dimension (default: %(default)s).",
    )


def add_layers(parser: Parser, *, inputs: int, searches: str = "") -> None:
    """What every verb has that compares layers.

    Args:
        parser: Of the verb.
        inputs: How many are looked at by default.
        searches: As of `add_timeout`.
    """
    add_inputs(parser, drawn=inputs, of_data=inputs)
    add_target_recipe(parser)
    add_batch_size(parser, 4)
    parser["tolerances"].add_argument(
        "--margin",
        type=real,
        metavar="X",
        help="A layer is at fault if its error is X times what rounding explains (default: 10).",
    )
    parser["tolerances"].add_argument(
        "--latent",
        action="store_true",
        help="Count faults that none of the inputs shows, such as a bound that no value reaches "
        "(default: they're listed, and don't change the verdict).",
    )
    add_timeout(parser, "model", searches=searches)
    add_format(parser)
