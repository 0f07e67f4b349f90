"""What a model is fed, as arrays: to run it where none of this runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conrepair.data.feeds import Feeds, open_feeds
from conrepair.engine.session import Session
from conrepair.intake.data import write_arrays
from conrepair.pipeline.run import run_state
from conrepair.pipeline.settings import Settings
from conrepair.pipeline.stages.preparation import build, draw
from conrepair.pipeline.subject import Subject
from conrepair.runtime.errors import UsageError
from conrepair.runtime.outputs import Output


def model_inputs(
    subject: Subject, session: Session, notes: Sequence[str] = (), *, timeout: float = 600.0
) -> tuple[Feeds, list[str]]:
    """Draw a model's inputs as a comparison does, or prepare its data.

    Args:
        subject: The model, with its dataset and recipe.
        session: Where.
        notes: What a person should know already.
        timeout: Seconds for each step.

    Returns:
        Arrays by the model's input, samples first, in the types that it takes; and what a person should know.

    Raises:
        ConrepairError: if the model can't be loaded, or the data doesn't fit it.
    """
    with run_state(session, Settings(seconds=timeout), [subject], notes) as state:
        build(state)
        draw(state)
        own = state.subjects[0]
        if own.source is None:
            if own.problem is None:
                raise ValueError(f"{own.name} wasn't loaded, and nothing says why")
            raise own.problem.as_error()
        for error in state.photos.wait().values():
            raise error
        data, recipe = state.data_for(own, own.source)
        reader = open_feeds(data, own.inputs(own.source), recipe)
        return reader.read(0, reader.count), state.notes


def check_inputs_file(path: Path, *, force: bool, data: str | Path | None = None) -> None:
    """Make sure that writing a model's inputs replaces nothing else.

    Args:
        path: For them.
        force: Whether earlier ones are replaced.
        data: That they're made of.

    Raises:
        UsageError: if something is there, or it isn't called .npz.
    """
    if path.suffix != ".npz":
        raise UsageError(f"{path} would hold arrays by name: call it .npz.")
    _output(path).check(force=force, inputs=[] if data is None else [data])


def save_inputs(arrays: Feeds, path: Path) -> None:
    """Write a model's inputs; the file appears whole.

    Args:
        arrays: By input, samples first.
        path: An .npz, from `check_inputs_file`.

    Raises:
        StorageError: if it can't be written.
    """
    with _output(path).write() as temporary:
        write_arrays(temporary, arrays)


def _output(path: Path) -> Output:
    return Output(path, "inputs", beside=True)
