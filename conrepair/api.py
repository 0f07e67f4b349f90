"""The verbs, from Python: `conrepair.compare(source, target)` and the like.

Models are paths or objects (modules, exported programs, Keras and ONNX models, TensorFlow functions, TFLite bytes);
data are paths, arrays, mappings of arrays by input, or anything that gives batches. Libraries run in a worker
process that is confined (docs/security.md), unless `in_process=True` is given.
"""

from __future__ import annotations

import contextlib
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from conrepair.converters.routes import find_route, pinned_route
from conrepair.data.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.formats import format_name, unknown_format
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Description, Model
from conrepair.intake.arguments import READERS, checked_arguments
from conrepair.intake.data import data_file
from conrepair.intake.models import model_file
from conrepair.pipeline.building import build_model
from conrepair.pipeline.datasets import dataset_for
from conrepair.pipeline.declared_inputs import input_specs
from conrepair.pipeline.described import read_file
from conrepair.pipeline.options import names_of, recipe_of
from conrepair.pipeline.pair import Asked, fitting_recipe
from conrepair.pipeline.plan import Goal
from conrepair.pipeline.session import Session
from conrepair.pipeline.settings import (
    BackendChoice,
    RepairSettings,
    answer_settings,
    conversion_settings,
    layer_settings,
    library_choice,
)
from conrepair.pipeline.subject import OnDisk, Subject
from conrepair.pipeline.verbs import (
    check_calibration,
    compare_pair,
    convert_model,
    execute_model,
    localize_pair,
    repair_pair,
)
from conrepair.report.built import Built
from conrepair.report.result import AuditResult
from conrepair.report.results import Compared, Converted, Executed, Localized, Repaired
from conrepair.runtime.errors import UsageError
from conrepair.runtime.scratch import SCRATCH, scratch_folder

if TYPE_CHECKING:
    from conrepair.generate.generated import Generated

__all__ = ["audit", "build", "compare", "convert", "execute", "generated", "inspect", "localize", "repair"]

Value = TypeVar("Value", Built, Compared, Converted, Executed, Repaired)
_Inputs = Sequence[str | TensorSpec]
_Recipe = str | Path | Mapping[str, Any] | Recipe | None


@checked_arguments
def compare(
    source: Any,
    target: Any,
    *,
    data: Any = None,
    recipe: _Recipe = None,
    target_recipe: _Recipe = None,
    inputs: _Inputs = (),
    rtol: float | None = None,
    atol: float | None = None,
    samples: int = 32,
    seed: int = 0,
    low: float | None = None,
    high: float | None = None,
    batch_size: int = 16,
    timeout: float = 600.0,
    trust: bool = False,
    in_process: bool = False,
) -> Compared:
    """Compare a model with its conversion by their answers.

    Args:
        source: The model that is right: a path or an object.
        target: Its conversion.
        data: What they're fed, first axis samples; default: inputs are drawn.
        recipe: Preprocessing of photos: a name, a recipe.json, or its fields.
        target_recipe: The same for the target, where it's another one.
        inputs: Of models that don't say them, each "[NAME=]batch,3,224,224[:dtype]".
        rtol: Relative tolerance of each element; default 1e-4. Where one of both is given, they decide alone.
        atol: Absolute tolerance of each element; default 1e-5.
        samples: How many inputs are drawn, or taken of data that is iterated over.
        seed: Of inputs that are drawn.
        low: Lower end of their range; default: what the models are made for.
        high: The upper end.
        batch_size: For models that leave it open.
        timeout: Seconds for each model; not in process.
        trust: Whether code and pickles in the files may run; they're yours, or somebody's whose programs you'd run.
        in_process: Whether everything runs in this process, for objects and for files of one's own: a debugger
            works, but a library that crashes takes the process along, nothing is stopped for its time, and what a
            file makes a library do is kept from nothing (docs/security.md).

    Returns:
        With `verdict`, `reason`, `faults`, `save(folder)`.

    Raises:
        ConrepairError: if a model or the data is unusable, with what to do.
    """
    settings = answer_settings(rtol, atol, timeout=timeout)
    with _Opened(in_process) as opened:
        asked = opened.asked(
            [source, target], data, recipe, target_recipe, inputs, numbered=False, collected=samples,
            samples=samples, seed=seed, low=low, high=high, batch_size=batch_size, trust=trust,
        )  # fmt: skip
        return opened.kept(compare_pair(asked, settings, opened.session))


@checked_arguments
def localize(
    source: Any,
    target: Any,
    *,
    between: Sequence[Any] = (),
    data: Any = None,
    recipe: _Recipe = None,
    target_recipe: _Recipe = None,
    inputs: _Inputs = (),
    samples: int = 32,
    seed: int = 0,
    low: float | None = None,
    high: float | None = None,
    batch_size: int = 4,
    margin: float | None = None,
    latent: bool = False,
    suspicious: bool = False,
    timeout: float = 600.0,
    trust: bool = False,
    in_process: bool = False,
) -> Localized:
    """Name the layers in which a conversion stops being its source.

    Args:
        source: The model that is right: a path or an object.
        target: Its conversion, or a folder that `build` wrote.
        between: Models on the way, in order: the fault's step is named then.
        data: As for `compare`; so many samples of it as are asked for.
        recipe: As for `compare`.
        target_recipe: As for `compare`.
        inputs: As for `compare`.
        samples: Inputs that outputs are compared on; layers are on the first of them.
        seed: As for `compare`.
        low: As for `compare`.
        high: As for `compare`.
        batch_size: For models that leave it open.
        margin: A fault is so many times the noise floor; default 10.
        latent: Whether faults that no input shows count as others do; else they're named.
        suspicious: Whether layers are ranked, too, by how much more they differ where the models disagree.
        timeout: As for `compare`.
        trust: As for `compare`.
        in_process: As for `compare`.

    Returns:
        With `verdict`, `reason`, `faults`, `save(folder)`.

    Raises:
        ConrepairError: if a model can't be loaded or looked into.
    """
    settings = layer_settings(
        samples, batch_size=batch_size, margin=margin, latent=latent, timeout=timeout, suspicious=suspicious
    )
    with _Opened(in_process) as opened:
        asked = opened.asked(
            [source, *between, target], data, recipe, target_recipe, inputs, collected=samples,
            samples=samples, seed=seed, low=low, high=high, limit=None if data is None else samples, trust=trust,
        )  # fmt: skip
        return localize_pair(asked, settings, opened.session)


@checked_arguments
def repair(
    source: Any,
    target: Any,
    *,
    output: str | Path | None = None,
    data: Any = None,
    recipe: _Recipe = None,
    target_recipe: _Recipe = None,
    inputs: _Inputs = (),
    samples: int = 72,
    seed: int = 0,
    low: float | None = None,
    high: float | None = None,
    batch_size: int = 4,
    margin: float | None = None,
    latent: bool = False,
    seconds: float = 300.0,
    advice: float = 0.0,
    bake_recipe: bool = False,
    timeout: float = 600.0,
    trust: bool = False,
    in_process: bool = False,
) -> Repaired:
    """Mend a conversion with the smallest change, in its own format.

    Args:
        source: The model that is right: a path or an object.
        target: Its conversion, or a folder that `build` wrote; it's only read.
        output: Folder for the repaired model, patch.json and result.json, as by `save`; default: nothing is written,
            and the repaired model lies in a folder that goes with the result.
        data: As for `localize`.
        recipe: As for `compare`.
        target_recipe: As for `compare`.
        inputs: As for `compare`.
        samples: How many inputs are drawn: a few that layers are looked at with, the others to verify on.
        seed: As for `compare`.
        low: As for `compare`.
        high: As for `compare`.
        batch_size: For models that leave it open.
        margin: As for `localize`.
        latent: As for `localize`; what counts is mended.
        seconds: After which no further edit is tried.
        advice: Seconds to try other ways to convert the source.
        bake_recipe: Whether operators in front of the input do what photos need.
        timeout: As for `compare`.
        trust: As for `compare`.
        in_process: As for `compare`.

    Returns:
        With `mended`, `model` (the repaired file), `verdict`, `faults` (as it came), `save(folder)`.

    Raises:
        ConrepairError: if a model can't be loaded or looked into; with an output also where it can't be edited.
    """
    wanted = RepairSettings(seconds=seconds, advice_seconds=advice, conversions=False, bake_recipe=bake_recipe)
    settings = layer_settings(
        samples, batch_size=batch_size, margin=margin, latent=latent, timeout=timeout, repair=wanted
    )
    with _Opened(in_process) as opened:
        asked = opened.asked(
            [source, target], data, recipe, target_recipe, inputs, collected=samples,
            samples=samples, seed=seed, low=low, high=high, limit=None if data is None else samples, trust=trust,
        )  # fmt: skip
        done = repair_pair(asked, settings, opened.session)
        return opened.kept(done) if output is None else done.save(output)


@checked_arguments
def convert(
    model: Any,
    *,
    to: str,
    via: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    output: str | Path | None = None,
    data: Any = None,
    recipe: _Recipe = None,
    inputs: _Inputs = (),
    samples: int = 8,
    seed: int = 0,
    low: float | None = None,
    high: float | None = None,
    check: bool = True,
    mend: bool = True,
    seconds: float = 120.0,
    timeout: float = 600.0,
    trust: bool = False,
    in_process: bool = False,
) -> Converted:
    """Convert a model to another format, and compare the result with it.

    Args:
        model: A path or an object.
        to: The format: torch, keras, tensorflow, tflite or onnx.
        via: Converters to use, in this order; default: the best route.
        options: By converter, as in {"keras-tflite": {"quantize": "int8"}}.
        output: File or folder for the result, as by `save`; default: it lies in a folder that goes with what is
            returned.
        data: As for `compare`; what a quantization is calibrated with, too.
        recipe: As for `compare`.
        inputs: As for `compare`.
        samples: How many inputs are drawn, or taken of data that is iterated over.
        seed: As for `compare`.
        low: As for `compare`.
        high: As for `compare`.
        check: Whether the result is compared with the model.
        mend: Whether another way is looked for where the route fails.
        seconds: For that.
        timeout: Seconds for each step; not in process.
        trust: As for `compare`.
        in_process: As for `compare`.

    Returns:
        With `model` (the file), `route`, `verdict`, `reason`, `save(path)`.

    Raises:
        ConrepairError: if there's no route, or nothing came of it.
    """
    target = format_name(to)
    if problem := unknown_format(target):
        raise UsageError(f"to: {problem}")
    settings = conversion_settings(check=check, mend=mend, seconds=seconds, timeout=timeout)
    chosen = {name: dict(values) for name, values in (options or {}).items()}
    with _Opened(in_process) as opened:
        file, subject, notes = opened.subject(
            model, data, recipe, inputs, collected=samples, labels="none",
            samples=samples, seed=seed, low=low, high=high, trust=trust,
        )  # fmt: skip
        path = subject.path
        framework = detect_framework(path)
        known = Model(framework, str(path), model_sha256(path), inputs=subject.declared)
        route = pinned_route(tuple(via), framework, target) if via else find_route(framework, target, model=known)
        check_calibration(route, chosen, file, recipe=recipe is not None)
        subject.goals = (Goal(via=tuple(step.name for step in route.steps), options=chosen),)
        if target == framework and not via:
            raise UsageError(f"{path} is {target} already. For a round trip name the converters (via).")
        done = opened.kept(convert_model(subject, settings, opened.session, notes))
    if output is not None:
        done.save(output)
    return done


@checked_arguments
def build(
    model: Any,
    *,
    target: str = "llvm",
    output: str | Path | None = None,
    inputs: _Inputs = (),
    batch_size: int = 16,
    timeout: float = 600.0,
    trust: bool = False,
    in_process: bool = False,
    **options: Any,
) -> Built:
    """Compile a model with TVM, without running it.

    Args:
        model: A path or an object.
        target: Code to generate: llvm, opencl or cuda, with attributes: "llvm -mcpu=native".
        output: Folder for what was made; default: the result's `folder`, which is there as long as the result.
        inputs: As for `compare`.
        batch_size: For a model that leaves it open.
        timeout: Seconds for each step; not in process.
        trust: As for `compare`.
        in_process: As for `compare`.
        **options: Others of a configuration's backend "tvm": setting ("O0" to "O3", "tuned"), importer,
            required_pass, disabled_pass, unfused, unscheduled, trials, database, threads, debug_enabled.

    Returns:
        With `folder` (a target for `compare`, `localize` and `repair`), `record`, `seconds`, `save(folder)`.

    Raises:
        ConrepairError: if an option is wrong, or it can't be compiled.
    """
    compiler = _compiler(READERS["tvm"]("options", {"target": target, **options}))
    declared = input_specs(inputs)
    with _Opened(in_process) as opened:
        path, own = model_file(model, opened.session.room / "given", inputs=declared)
        detect_framework(path)
        name = names_of([path], numbered=False)[0]
        subject = Subject(name=name, origin=OnDisk(path, trust or own), declared=declared)
        done = opened.kept(build_model(subject, compiler, opened.session, batch_size=batch_size, timeout=timeout))
    if output is not None:
        done.save(output)
    return done


@checked_arguments
def execute(
    model: Any,
    *,
    backend: Literal["libraries", "onnxruntime", "tvm"] = "libraries",
    tvm: Mapping[str, Any] | None = None,
    data: Any = None,
    recipe: _Recipe = None,
    inputs: _Inputs = (),
    samples: int = 32,
    seed: int = 0,
    low: float | None = None,
    high: float | None = None,
    batch_size: int = 16,
    timeout: float = 600.0,
    trust: bool = False,
    in_process: bool = False,
) -> Executed:
    """Run a model, and keep its outputs.

    Args:
        model: A path or an object.
        backend: The model's own library, ONNX Runtime as deployed, with all its optimizations, or TVM, whose
            outputs are compared with those of the model's own library.
        tvm: Options of TVM, as for `build`: target, setting and others; and `device`, where it runs.
        data: As for `compare`.
        recipe: As for `compare`.
        inputs: As for `compare`.
        samples: How many inputs are drawn, or taken of data that is iterated over.
        seed: As for `compare`.
        low: As for `compare`.
        high: As for `compare`.
        batch_size: For a model that leaves it open.
        timeout: In seconds; not in process.
        trust: As for `compare`.
        in_process: As for `compare`.

    Returns:
        With `outputs` by name, `times`, `save(folder)`.

    Raises:
        ConrepairError: if it can't be run.
    """
    if tvm is not None and backend != "tvm":
        raise UsageError(f"tvm is given, and the backend is {backend}. Give backend='tvm', or leave tvm out.")
    chosen = _compiler(tvm or {}) if backend == "tvm" else library_choice(backend)
    with _Opened(in_process) as opened:
        _, subject, notes = opened.subject(
            model, data, recipe, inputs, collected=samples,
            samples=samples, seed=seed, low=low, high=high, trust=trust,
        )  # fmt: skip
        subject.batch_size = batch_size
        subject.backends = (chosen,)
        return opened.kept(execute_model(subject, opened.session, notes, timeout=timeout))


@checked_arguments
def inspect(
    model: Any, *, inputs: _Inputs = (), timeout: float = 600.0, trust: bool = False, in_process: bool = False
) -> Description:
    """Say what a model consists of: inputs, outputs, operators, weights.

    Args:
        model: A path or an object.
        inputs: As for `compare`.
        timeout: In seconds; not in process.
        trust: Whether code and pickles in the file may run.
        in_process: As for `compare`.

    Raises:
        ConrepairError: if it can't be loaded.
    """
    declared = input_specs(inputs)
    with _Opened(in_process) as opened:
        path, own = model_file(model, opened.session.room / "given", inputs=declared)
        return read_file(path, opened.session, declared, timeout=timeout, trust=trust or own).checked()


@checked_arguments
def generated(
    count: int | None = None,
    *,
    nodes: int = 10,
    seed: int = 0,
    opset: int = 20,
    operators: Sequence[str] = (),
    exclude: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    ranks: tuple[int, int] = (0, 6),
    elements: int = 4096,
    forms: Mapping[str, float] | None = None,
    patterns: Mapping[str, float] | None = None,
    woven: float = 0.2,
    extremes: float = 0.2,
    single: bool = False,
    symbolic: float = 0.0,
    learn: Sequence[str | Path] = (),
    grown_from: Sequence[str | Path] = (),
    changes: int = 10,
    functions: Sequence[Callable[[Any], Any]] = (),
    support: str | None = None,
    judge: bool = False,
) -> Iterator[Generated]:
    """Make random valid networks, in this process: those of `conrepair generate` with the same wishes.

    Args:
        count: How many are tried; those that ONNX Runtime refuses are left out. Default: without end.
        nodes: Operators of each.
        seed: Of all of them.
        opset: Of ONNX's operators.
        operators: Only these; default: all.
        exclude: None of these.
        dtypes: Element types of tensors; default: all.
        ranks: Numbers of axes of tensors: the fewest and the most.
        elements: Most elements of a tensor.
        forms: Shares of networks with a form of legal nonsense, by the form's name.
        patterns: Shares of networks with a pattern, by the pattern's name.
        woven: How likely another pattern is put in, for each five nodes.
        extremes: Share of networks some of whose inputs and weights are at the ends of what they may be.
        single: Whether each has one input and one output.
        symbolic: Share of networks that leave sizes open.
        learn: Models of which operators are put in as they are, folders of models, or "onnx" for ONNX's own cases.
        grown_from: Models, or folders of them, of a piece of which each is grown.
        changes: Of each that is grown from a model.
        functions: Filters (of a parameter `network`) and constraints (of `setting`) that return what is kept.
        support: Only what this runtime, compiler, converter or format takes, which is found out in workers.
        judge: Whether each is run with ONNX Runtime's optimizations, too.

    Yields:
        Each with `model` (an `onnx.ModelProto`), `inputs`, `outputs`, `about`.

    Raises:
        ConrepairError: if no network can be so.
    """
    from conrepair.generate.checks import check_wishes
    from conrepair.generate.functions import Functions, named
    from conrepair.generate.generated import each_generated
    from conrepair.generate.wishes import Wishes
    from conrepair.pipeline.generate_material import material_files, material_of
    from conrepair.pipeline.narrowing import support_of
    from conrepair.runtime.progress import ProgressDisplay

    wishes = Wishes(
        nodes=nodes,
        operators=tuple(operators),
        exclude=tuple(exclude),
        dtypes=tuple(dtypes),
        ranks=ranks,
        most=elements,
        opset=opset,
        woven=woven,
        extremes=extremes,
        single=single,
        symbolic=symbolic,
        quotas=dict(forms or {}),
        patterns=dict(patterns or {}),
        changes=changes,
    )
    files = material_files([str(item) for item in learn], [str(item) for item in grown_from], Path.cwd())
    files.check(wishes)
    instances = files.instances(ProgressDisplay(quiet=True))
    check_wishes(wishes, frozenset(item.op for item in instances))
    own = Functions([named(item) for item in functions])
    taken = None if support is None else support_of(support, wishes.names, opset)
    networks = each_generated(wishes, seed, count, material_of(files, instances, opset), own, taken)
    return (network.judged() for network in networks) if judge else networks


@checked_arguments
def audit(config: str | Path | Mapping[str, Any], *, quiet: bool = True) -> AuditResult:
    """Run the audit that a configuration describes, and write its folder; networks that it wants are not made.

    Args:
        config: A JSON file, or what it says (paths start at the current folder then).
        quiet: Whether no progress is shown.

    Raises:
        ConrepairError: if the configuration is wrong.
    """
    from conrepair.config.load import parse_config
    from conrepair.pipeline.commands import run_and_write
    from conrepair.pipeline.config_command import load_for_run

    if isinstance(config, Mapping):
        return run_and_write(parse_config(dict(config), "the configuration"), Path.cwd(), quiet=quiet)
    path = Path(config)
    return run_and_write(load_for_run(path, quiet=quiet), path.absolute().parent, quiet=quiet)


def _compiler(options: Mapping[str, Any]) -> BackendChoice:
    """TVM, by options that a configuration's types check."""
    from conrepair.pipeline.from_config import tvm_choice  # only compilers need those types

    return tvm_choice(options, Path.cwd())


class _Opened:
    """A session for one call, with what was handed over as files; it ends with the call, or with its result."""

    def __init__(self, in_process: bool) -> None:
        self._stack = contextlib.ExitStack()
        self._in_process = in_process

    def __enter__(self) -> _Opened:
        room = self._stack.enter_context(scratch_folder(Path(tempfile.gettempdir()), SCRATCH))
        self._work = contextlib.ExitStack()
        self.session = self._work.enter_context(Session(room, in_process=self._in_process))
        return self

    def __exit__(self, *error: Any) -> None:
        self._work.__exit__(*error)
        self._stack.__exit__(*error)

    def kept(self, result: Value) -> Value:
        """A result whose files stay as long as it does."""
        weakref.finalize(result, self._stack.pop_all().close)
        return result

    def asked(
        self,
        models: Sequence[Any],
        data: Any,
        recipe: _Recipe,
        target_recipe: _Recipe,
        inputs: _Inputs,
        *,
        collected: int,
        numbered: bool = True,
        trust: bool = False,
        **others: Any,
    ) -> Asked:
        """What is asked for, objects written as files."""
        given = self.session.room / "given"
        declared = input_specs(inputs)
        file = data_file(data, given, limit=collected)
        called = ["source", *(f"between[{place}]" for place in range(len(models) - 2)), "target"]
        written = [
            model_file(model, given / str(place), inputs=declared, data=file, name=name)
            for place, (name, model) in enumerate(zip(called, models, strict=True))
        ]
        source, *between, target = (path for path, _ in written)
        return Asked(
            source=source,
            target=target,
            between=tuple(between),
            names=names_of([path for path, _ in written], numbered=numbered),
            data=file,
            recipe=recipe_of(recipe),
            target_recipe=recipe_of(target_recipe),
            inputs=declared,
            trust=trust or all(own for _, own in written),
            **others,
        )

    def subject(
        self,
        model: Any,
        data: Any,
        recipe: _Recipe,
        inputs: _Inputs,
        *,
        collected: int,
        trust: bool,
        **drawn: Any,
    ) -> tuple[Path | None, Subject, list[str]]:
        """One model and what it's fed: the data's file, the model, and what a person should know."""
        given = self.session.room / "given"
        declared = input_specs(inputs)
        file = data_file(data, given, limit=collected)
        path, own = model_file(model, given / "0", inputs=declared, data=file)
        detect_framework(path)
        name = names_of([path], numbered=False)[0]
        dataset = dataset_for(file, **drawn)
        chosen, notes = fitting_recipe(name, dataset, recipe_of(recipe))
        origin = OnDisk(path, trust or own)
        return file, Subject(name=name, origin=origin, declared=declared, dataset=dataset, recipe=chosen), notes
