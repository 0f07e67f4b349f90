"""What the verb `execute` does: run one model on one backend, and keep its outputs."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from conrepair.backends.tvm.capture import KERNELS
from conrepair.config.load import parse_config
from conrepair.frameworks.detect import detect_framework
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.build_command import tvm_config
from conrepair.pipeline.options import dataset_of, given, parse_input, slug
from conrepair.report.result import Row
from conrepair.report.write import row_json
from conrepair.runtime.errors import UsageError
from conrepair.runtime.files import whole_output, write_json
from conrepair.runtime.progress import ProgressDisplay, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder
from conrepair.runtime.store import RECORD

__all__ = ["execute"]

_RECORD = "run.json"


def execute(options: argparse.Namespace) -> int:
    """Run a file on a backend: an audit of one model, whose outputs are kept.

    What a compiler made is compared with the model in its own library.

    Returns:
        The exit code, as that comparison has it.
    """
    path, output = Path(options.model).resolve(), Path(options.output).absolute()
    detect_framework(path)
    if output.exists() and not (output / _RECORD).is_file():
        raise UsageError(f"{output} exists and holds no outputs of a run, so it isn't replaced. Give another output.")
    if output.exists() and not options.force:
        raise UsageError(f"{output} exists. Give another output, or --force to replace it.")
    if options.debug and options.backend != "tvm":
        raise UsageError("--debug keeps what kernels compute, and only --backend tvm has kernels.")
    tvm = tvm_config(options, options.device).model_dump(mode="json", by_alias=True)
    backend = tvm if options.backend == "tvm" else options.backend
    inputs = [parse_input(text) for text in options.input] or None
    with scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch:
        value = {
            "output": str(scratch),
            "dataset": dataset_of(options),
            "batch_size": options.batch_size,
            "backends": [backend],
            "limits": {"workers": 1, "seconds": options.timeout},
            "models": [
                given({"name": slug(path), "path": str(path), "inputs": inputs, "recipe": options.recipe}),
            ],
        }
        with ProgressDisplay(quiet=options.quiet) as display:
            result = run_audit(parse_config(value, "command line"), Path.cwd(), display)
        row = result.rows[-1]
        if row.ran.run is None:
            raise _failure(row)
        with whole_output(output) as temporary:
            shutil.copytree(row.ran.run.folder, temporary, ignore=shutil.ignore_patterns(RECORD))
            write_json(temporary / _RECORD, json.loads(json.dumps(row_json(row))))
    say(f"{output}: {row.ran.run.count} samples on {row.backend}")
    if (output / KERNELS).is_file():
        say(_kernels(output / KERNELS))
    if row.ran.times is not None:
        say(f"median {1000 * row.ran.times.median:.2f} ms for each sample")
    if row.verdict is not None:
        say(f"{row.verdict.value}: {row.reason}")
    return row.exit_code


def _kernels(path: Path) -> str:
    kernels = json.loads(path.read_text(encoding="utf-8"))["kernels"]
    mapped = sum(bool(kernel["members"]) for kernel in kernels)
    return f"{path}: {len(kernels)} kernels, {mapped} of which stand for operators of the model; each one's results"


def _failure(row: Row) -> Exception:
    if row.problem is None:
        return ValueError("a row that didn't run has a problem")
    return row.problem.as_error(row.backend)
