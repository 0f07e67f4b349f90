"""Compile one model: describe it, convert it where the compiler wants another format, compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.engine.needs import framework_needs
from conrepair.engine.scheduler import Task
from conrepair.engine.session import Session
from conrepair.jobs.models import conversion_payload
from conrepair.pipeline.compiling import (
    backend_options,
    compile_payload,
    compile_progress,
    device_of,
    plan_preparation,
)
from conrepair.pipeline.settings import BackendChoice
from conrepair.pipeline.sources import model_of, source_task
from conrepair.pipeline.subject import Subject
from conrepair.report.built import Built
from conrepair.runtime.store import Entry

__all__ = ["build_model"]


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
    preparation = plan_preparation(subject.name, source.model, compiler)
    inputs = source.description.inputs
    for conversion in preparation.conversions if preparation is not None else ():
        payload = conversion_payload(source.model, conversion.step, conversion.options, inputs)
        task = Task(conversion.name, "convert", _always(payload), needs=conversion.step.needs, timeout=timeout)
        source = model_of(session.made(task))
    payload = compile_payload(source.model, compiler, backend_options(compiler), batch_size, runs=False)
    task = Task(
        "build",
        "compile",
        _always(payload),
        needs=framework_needs(source.model.framework) | {compiler.name},
        timeout=timeout,
        progress=compile_progress(compiler),
        device=device_of(compiler.name, compiler.options),
    )
    entry = session.made(task)
    return Built(
        folder=entry.folder,
        via="" if preparation is None else preparation.route,
        record=entry.result["build"],
        source=subject.path,
    )


def _always(payload: dict[str, Any]) -> Any:
    def give(_: Mapping[str, Entry]) -> dict[str, Any]:
        return payload

    return give
