"""Compile one model: what Python and the command line share."""

from __future__ import annotations

from pathlib import Path

from conrepair.application.engine.session import Session
from conrepair.application.engine.task import Task
from conrepair.application.jobs.values import Compiled, ConversionStep
from conrepair.application.pipeline.declared_inputs import input_specs
from conrepair.application.pipeline.plan import Conversion, backend_options, plan_preparation
from conrepair.application.pipeline.settings import BackendChoice
from conrepair.application.pipeline.stages.compilation import compile_task
from conrepair.application.pipeline.stages.preparation import source_task
from conrepair.application.pipeline.stages.state import model_of
from conrepair.application.pipeline.subject import Subject, slug
from conrepair.application.report.built import Built
from conrepair.application.verbs.options import Build
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.model import LoadedModel
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.intake.models import model_file


def build_of(options: Build, given: Path = Path()) -> Subject:
    """The model to compile.

    Args:
        options: Of the verb.
        given: Folder for objects; a shell has none.

    Raises:
        ConrepairError: if there's no such file, or an option's value can't be meant.
    """
    declared = input_specs(options.inputs)
    path, own = model_file(options.model, given, inputs=declared)
    detect_framework(path)
    return Subject(name=slug(path), origin=path, trust=options.trust or own, declared=declared)


def build_model(
    subject: Subject, compiler: BackendChoice, session: Session, *, batch_size: int, timeout: float
) -> Built:
    """Compile a model, without running it.

    Args:
        subject: The model.
        compiler: From `from_config.named_choice`.
        session: Where.
        batch_size: For a model that leaves it open.
        timeout: Seconds for each step.

    Raises:
        ConrepairError: what failed.
    """
    source = model_of(session.made(source_task(subject, timeout)))
    steps = plan_preparation(subject.name, source.model, compiler)
    inputs = source.description.inputs
    for conversion in steps:
        source = _converted(source, conversion, inputs, session, timeout)
    options = backend_options(compiler)
    entry = session.made(
        compile_task("build", source.model, compiler, options, batch_size=batch_size, seconds=timeout, runs=False)
    )
    return Built(
        folder=entry.folder,
        via=steps[-1].route if steps else "",
        record=entry.read(Compiled).build,
        source=subject.path,
    )


def _converted(
    source: LoadedModel, conversion: Conversion, inputs: tuple[TensorSpec, ...], session: Session, timeout: float
) -> LoadedModel:
    step = ConversionStep.of(conversion.step, conversion.options)
    payload = {"model": source.model.bare, "step": step, "inputs": inputs}
    task = Task(conversion.name, "convert", lambda _: payload, needs=conversion.step.job_needs, timeout=timeout)
    return model_of(session.made(task))
