"""What to do next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conrepair.application.report.result import AuditResult, Row
from conrepair.diagnosis.localization.judge.quantized_rules import OVERFLOWS, SATURATES, SHIFTED, ZERO_POINTS
from conrepair.diagnosis.localization.result import OPERAND, Localization, LocatedFault
from conrepair.formats.models.model import Model
from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.path_text import typed
from conrepair.ground.runtime.words import shortened
from conrepair.verdicts.evaluate.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class About:
    """The circumstances of a localization.

    Attributes:
        source: The original model.
        target: The converted model; of a build, the model that was compiled.
        backend: That ran the target, where what it computes was compared.
        data: What was fed, in words.
        samples: On which outputs were compared, too; 0 where layers alone were.
        recipe: By which photos were preprocessed, as its option has it; "" where there are none.
    """

    source: Model
    target: Model
    data: str = ""
    samples: int = 0
    backend: str = ""
    recipe: str = ""


def about_step(row: Row, result: AuditResult, place: int = -1) -> About:
    """The circumstances of a localization: what was compared, and on what.

    Args:
        row: Of the target.
        result: The run that it belongs to.
        place: Of the step; default: the last one.
    """
    step, data = row.localized.steps[place], result.datasets.get(row.reference, "")
    samples = 0 if row.comparison is None or row.ran.run is None else row.ran.run.count
    files, used = step.compared, result.recipes.get(row.reference)
    name = "" if used is None else str(used.get("name", ""))
    recipe = "" if used is None else name if name in RECIPES else "RECIPE.json"
    return About(
        source=files.source, target=files.target, data=data, samples=samples, backend=files.backend, recipe=recipe
    )


FUSED = 48
"""Letters that a name has at most which is told as it is, where the source has another one."""

_MOST = 100  # faults, the largest first: sentences name no more


def names_of_fault(fault: LocatedFault) -> Mapping[str, str]:
    """The source's name for the first of the target's layers, where that one's is too long to be read."""
    if not fault.source_layers or not fault.target_layers:
        return {}
    ours, theirs = fault.source_layers[0], fault.target_layers[0]
    return {theirs: ours} if len(theirs) > FUSED and len(ours) < len(theirs) else {}


def names_of(result: Localization) -> Mapping[str, str]:
    """The same of the faults that a sentence may name."""
    found: dict[str, str] = {}
    for fault in (*result.faults[:_MOST], *result.latent[:_MOST]):
        found |= names_of_fault(fault)
    return found


_PLACES = {
    Kind.PREPROCESSING: "Preprocess inputs for {target} as for {source}: mean, scale, channel order, resizing.",
    Kind.INPUT: "Check the inputs of {target}: their order, layout and sizes.",
    Kind.STRUCTURE: "Check in {target} what arranges {there}: Transpose, Reshape, Gather, the order of outputs.",
    Kind.PARAMETERS: "Compare the weights of {layer} in {target} with those of {original} in {source}.",
    Kind.HYPERPARAMETERS: "Compare the attributes of {layer} in {target} with those of {original} in {source}.",
    Kind.GRAPH: "Compare the operators that compute {there} in {target} with those that compute {here} in {source}.",
    Kind.PRECISION: "Check the types and scales of {layer} in {target}, or convert it in float32.",
    Kind.COMPILATION: "`conrepair repair` says if a pass or the importer is at fault, and builds {target} again.",
}
_IN_FILE = {
    Kind.PREPROCESSING: "Check {layer} in {target}: {source} does nothing like it to its inputs.",
    Kind.INPUT: "Check how {target} arranges its inputs at {layer}.",
}
_KNOWN = "To prevent it, look at what writes {layer} into {target}: the converter, or a script after it."
_CONSTANT = "Compare the number that {layer} computes with in {target} with that of {original} in {source}."
_NAME = 60
_QUANTIZERS = {
    ("keras", "tflite"): "--option keras-tflite.quantize=int8",
    ("tensorflow", "tflite"): "--option savedmodel-tflite.quantize=int8",
    ("onnx", "onnx"): "--via onnx-quantize-static",
}
_VERDICTS = {
    Verdict.EQUIVALENT: "Nothing to do: no layer is faulty on {seen}. {unseen}",
    Verdict.NOISE: "Nothing to do: no layer is faulty on {seen}, and what differs is rounding error. {unseen}",
    Verdict.QUANTIZED: "Nothing to do if this quantization was wanted: on {seen} no layer loses more than it "
    "allows. {unseen}",
    Verdict.UNDECIDED: "Try other inputs (--seed) or your own (--data): these can't tell.",
    Verdict.UNDEPLOYABLE: "Find out why the converted model doesn't load.",
}
_CALIBRATED = (
    "Give real inputs (--data): only they show whether the calibration data covered what the model is fed. {unseen}"
)
_ZERO_POINT = "Check the scale and zero point of {layer} in {target}, wherever they are written."
_NO_PLACE = "No single layer is faulty. Check how both models' inputs are preprocessed, and try more (--samples)."


def fault_advice(fault: LocatedFault, about: About | None) -> str:
    """Where to look, in which file."""
    source, target = "the original", "the converted model"
    if about is not None:
        source, target = _file(about.source), _file(about.target)
    names, layer = names_of_fault(fault), (fault.target_layers or (fault.target_tensor,))[0]
    if about is not None and about.backend:
        return (
            f"{target} is right: report {_quoted(layer, '')} to the makers of {about.backend}, or write it with "
            "other operators."
        )
    if any(words == SATURATES for words, _ in fault.differences):
        return f"Quantize {source} again, calibrated on inputs as it gets them{_again(about)}."
    if any(words == OVERFLOWS for words, _ in fault.differences):
        return f"Convert {source} again, and keep `{fault.target_layers[0]}` in float32, between Casts."
    by_grid = any(words in {SHIFTED, *ZERO_POINTS} for words, _ in fault.differences)
    return (_ZERO_POINT if by_grid else _words(fault)).format(
        source=source,
        target=target,
        layer=_quoted(names.get(layer, layer), fault.source_tensor),
        original=_quoted((fault.source_layers or (fault.source_tensor,))[0], fault.target_tensor),
        here=_quoted(fault.source_tensor, fault.target_tensor),
        there=_quoted(fault.target_tensor, fault.source_tensor),
    )


def _words(fault: LocatedFault) -> str:
    """Where to look, by what is there: inputs or operators of the file, weights or a constant or neither."""
    if fault.kind in _IN_FILE and not fault.at_input:
        return _IN_FILE[fault.kind]
    if fault.differences and fault.kind in {Kind.PARAMETERS, Kind.HYPERPARAMETERS, Kind.GRAPH, Kind.STRUCTURE}:
        return _KNOWN
    if fault.kind is Kind.PARAMETERS and not set(fault.holds) - {OPERAND}:
        return _CONSTANT if fault.holds else _PLACES[Kind.GRAPH]
    return _PLACES[fault.kind]


def verdict_advice(result: Localization, about: About | None) -> str:
    """What to do about a target without a faulty layer: it promises no more than was seen."""
    if result.latent and result.verdict.is_right:
        files = [] if about is None else [typed(model.path) for model in (about.source, about.target)]
        count = "one layer differs" if len(result.latent) == 1 else f"{len(result.latent)} layers differ"
        return (
            f"Right on {seen(result)}, but {count} in a way that these inputs don't trigger. Your own (--data) may. "
            f"`{shlex.join(['conrepair', 'repair', *files, '--latent'])}` fixes it."
        )
    words = _VERDICTS.get(result.verdict, _NO_PLACE)
    if result.options.unsaid and result.verdict in {Verdict.QUANTIZED, Verdict.UNDECIDED}:
        words = _CALIBRATED
    return words.format(seen=seen(result, about), unseen=_unseen(result))


def seen(result: Localization, about: About | None = None) -> str:
    """On what layers were compared: how many inputs, and of which data.

    Args:
        result: What was found.
        about: For the data.
    """
    samples = f"{result.samples} {'sample' if result.samples == 1 else 'samples'}"
    return samples if about is None or not about.data else f"{samples} (of {about.data})"


def _unseen(result: Localization) -> str:
    """What an answer of "right" says nothing of."""
    missed = 0 if result.coverage is None else result.coverage.all_nodes - result.coverage.nodes
    operators = f"{missed} operators that no compared tensor depends on, " if missed else ""
    return f"Not tested: {operators}other inputs, other batch sizes."


def step_advice(result: Localization) -> str:
    """What to do about the converters at fault; "" where they aren't known."""
    steps = list(dict.fromkeys(fault.step for fault in result.faults if fault.step))
    if not steps:
        return ""
    return f"Repeat the step {shortened(', '.join(steps), _NAME)} with other options, or with another converter."


def _again(about: About | None) -> str:
    """The command that quantizes a model like the target of the source; "" where there's none."""
    step = None if about is None else _QUANTIZERS.get((about.source.framework, about.target.framework))
    if about is None or step is None:
        return ""
    path = shlex.quote(typed(about.source.path))
    recipe = f" --recipe {about.recipe}" if about.recipe else ""
    unsaid = ", whose preprocessing RECIPE.json says" if about.recipe.endswith(".json") else ""
    photos = "" if about.recipe else ", with their --recipe"
    command = f"conrepair convert {path} --to {about.target.framework} {step} --data DATA{recipe} -o NEW"
    return f": `{command}` (DATA: a folder of photos{photos}, or arrays (.npz){unsaid}; NEW: the file to write)"


def _quoted(name: str, partner: str) -> str:
    """A name; of what has none, as a lost output, what it would stand for."""
    given = f"`{shortened(name or partner, _NAME)}`"
    return given if name else f"what stands for {given}" if partner else "the inputs and outputs"


def _file(model: Model) -> str:
    return shortened(Path(model.path).name, _NAME)
