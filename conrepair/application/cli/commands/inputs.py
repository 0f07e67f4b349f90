"""`conrepair inputs`: what a model is fed, as a file, to run it elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from conrepair.application.cli.next_step import command, tell_next
from conrepair.application.engine.session import Session
from conrepair.application.pipeline.datasets import is_array_file
from conrepair.application.pipeline.single import inputs_file, model_inputs, request_of
from conrepair.application.verbs.options import Inputs
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.shown.progress import say


def inputs(options: argparse.Namespace) -> int:
    """Draw a model's inputs, or prepare its data, and write them.

    Returns:
        The exit code.

    Raises:
        ConrepairError: if the model can't be loaded, the data doesn't fit it, or something else is in the way.
    """
    verb, path = Inputs.of(vars(options)), Path(options.output).absolute()
    output = inputs_file(path)
    output.check(force=options.force, inputs=[] if verb.data is None else [verb.data])
    request = request_of(verb)
    with Session(quiet=options.quiet, keeps=not options.trust, fresh=options.fresh) as session:
        arrays, notes = model_inputs(request, session)
        with output.write() as temporary:
            write_arrays(temporary, arrays)
    for note in notes:
        say(f"note: {note}")
    for name, array in arrays.items():
        say(f"{name}: {array.dtype}{list(array.shape)}, first axis samples")
    say(f"written: {path}")
    compared = command("compare", options.model, "outputs.npz", "--data", path)
    steps = f"run the model elsewhere on these inputs, save its outputs by name (np.savez), then {compared}"
    if request.data is not None and is_array_file(request.data):
        original = command("compare", "ORIGINAL", "outputs.npz", "--data", request.data)
        steps += f"; {original} compares them with another model's (ORIGINAL), for which the data is"
    tell_next(steps)
    return int(ExitCode.EQUIVALENT)
