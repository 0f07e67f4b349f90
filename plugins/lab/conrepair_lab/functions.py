"""The laboratory's verbs, from Python: `conrepair.trace(model)` and `conrepair.generated(count=...)`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from conrepair.application.engine.opened import Opened
from conrepair.application.verbs.option import takes
from conrepair_lab.options.generate import OneByOne
from conrepair_lab.options.trace import Trace

if TYPE_CHECKING:  # what a verb needs is imported when it's called: a program that names this module starts at once
    from conrepair_lab.generate.generated import Generated
    from conrepair_lab.report.tracing.folder import TracedModel

__all__ = ["generated", "trace"]


@takes(Trace)
def trace(options: Trace) -> TracedModel:
    """Find inputs on which a compiled network loses digits, the kernel, and what to switch off.

    Returns:
        With `verdict`, `exit_code`, `found` (deviations, kernels, culprits, forms), `judged` (inputs),
        `save(folder)`.

    Raises:
        ConrepairError: if the model isn't ONNX, can't be run or searched, or a system doesn't exist.
    """
    from conrepair_lab.runs.tracing import trace_file

    with Opened(options) as opened:
        return opened.kept(trace_file(options, opened.session, opened.given))


@takes(OneByOne)
def generated(options: OneByOne) -> Iterator[Generated]:
    """Make random valid networks, in this process: those of `conrepair generate` with the same wishes.

    Yields:
        Each with `model` (an `onnx.ModelProto`), `inputs`, `outputs`, `about`.

    Raises:
        ConrepairError: if no network can be so.
    """
    from conrepair.ground.runtime.shown.progress import ProgressDisplay
    from conrepair_lab.campaigns.generate_material import material_files, material_of
    from conrepair_lab.campaigns.narrowing import element_types, support_of
    from conrepair_lab.generate.checks import check_wishes
    from conrepair_lab.generate.functions import Functions, named
    from conrepair_lab.generate.generated import each_generated

    wishes, opset = options.wishes, options.opset
    files = material_files(options.learn, options.grown_from, Path.cwd())
    files.check(wishes)
    instances = files.instances(ProgressDisplay(quiet=True))
    check_wishes(wishes, frozenset(item.op for item in instances))
    own = Functions([named(item) for item in options.functions])
    taken = None if options.support is None else support_of(options.support, wishes.names, opset)
    material = material_of(files, instances, opset)
    networks = each_generated(wishes, options.seed, options.count, material, own, taken, element_types(wishes))
    return (network.refereed().judged() for network in networks) if options.judge else networks
