"""The verdict of a localization: what the layers say, bounded by what the outputs say."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace

from conrepair.diagnosis.localization.judge.hidden import Explained
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.judge.quantized_rules import CLIPPING
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Coverage, Localization, LocatedFault, Rule
from conrepair.formats.networks.network import Network
from conrepair.ground.data.declared_sizes import Sizes, resized_inputs, sizes_in_words
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.compare import ComparedOutputs
from conrepair.verdicts.evaluate.verdict import Verdict

_HELD = ("weights", "bias")  # what layers have
_NUMBERS = re.compile(r"(?<![\w.])[-+]?\d[\d.e+-]*(?: to [-+]?\d[\d.e+-]*)?(?![\w])|\[[^]]*\]")
_SCALES = re.compile(r", [^,]*\bscales?\b[^,]*(, for groups[^,]*)?")  # a small layer's groups are its channels


def rules_of(faults: Sequence[LocatedFault], graph: LayerGraph) -> tuple[Rule, ...]:
    """The rules behind faults, that with the most places first.

    Args:
        faults: With what explains them.
        graph: The target's, which says how many layers of a sort there are.
    """
    places: dict[str, dict[str, LocatedFault]] = {}
    written: dict[str, set[str]] = {}
    for fault in faults:
        for words, layer in fault.differences:
            # How far one is off, and how many slices it has, needn't be the same for several layers.
            rule = _NUMBERS.sub("..", _SCALES.sub("", words))
            places.setdefault(rule, {}).setdefault(layer, fault)
            written.setdefault(rule, set()).add(words)
    sorts = {node.layer: node.native for node in graph.nodes}
    counts = Counter(sorts.values())
    found = []
    for rule, layers in places.items():
        if len(layers) < judging.RULE or len(set(layers.values())) == 1:  # one fault is one finding, wherever it is
            continue
        words = _together(written[rule], rule)
        natives = {sorts.get(name, "") for name in layers}
        # Of one sort of layers, of which others may be right, and not of pieces of several.
        of_layers = len(natives) == 1 and any(word in rule for word in (*natives, *_HELD))
        among = counts[natives.pop()] if of_layers else 0
        first = next((fault for fault in layers.values() if fault.differences[0][0] in written[rule]), None)
        kind = next(iter(layers.values())).kind if first is None else first.kind
        found.append(Rule(kind, words, tuple(layers), max(among, len(layers)) if among else 0))
    return tuple(sorted(found, key=lambda rule: -len(rule.layers)))


def _together(written: Set[str], rule: str) -> str:
    """What's written the same way in all places: with numbers, without them, or without how scales are shared."""
    for forms in (written, {_NUMBERS.sub("..", words) for words in written}):
        if len(forms) == 1:
            return min(forms)
    return rule


_WITHIN = "every layer that was compared is within rounding error"
_NAMED = 3  # layers that are named in a sentence


def concluded(
    faults: Sequence[LocatedFault],
    rules: Sequence[Rule],
    compared: ComparedOutputs,
    explained: Explained | None,
    coverage: Coverage,
    worst: float,
    *,
    beyond: str = "",
    excused: str = "",
) -> tuple[Verdict, str]:
    """Find the verdict and its reason.

    That no layer is at fault is no proof: it's said that a target is right only where its outputs are, by the same
    function that judges them everywhere. Else nothing is decided.

    Args:
        faults: The largest first.
        rules: Those of them that are alike.
        compared: The outputs of all batches that ran as a whole.
        explained: Where the outputs' error comes from, if that was asked.
        coverage: How much was compared.
        worst: Largest relative L2 of an output.
        beyond: In words, which layers only values of drawn inputs saturate.
        excused: In words, which layers don't count, as outputs are within a tolerance that was chosen.
    """
    if excused:
        return Verdict.EQUIVALENT, f"outputs are within the tolerance that you chose; not counted: {excused}"
    if faults:
        return Verdict.FAULTY, fault_words(faults, rules)
    if beyond:
        return Verdict.UNDECIDED, (
            "the only layers that are off clip values outside of their calibrated range, and random inputs may "
            f"give such values: {beyond}. Try your own data (--data), to see whether calibration was enough"
        )
    if compared.differs:
        return Verdict.UNDECIDED, _of_doubt(compared, explained, coverage)
    if compared.verdict is Verdict.EQUIVALENT:
        return Verdict.EQUIVALENT, f"{_WITHIN}, outputs differ by {percent(worst)}"
    if not coverage.is_enough:
        return Verdict.UNDECIDED, f"no layer was found faulty, but most weren't compared: {_not_compared(coverage)}"
    if compared.verdict is Verdict.QUANTIZED:
        words = f"outputs differ by {percent(worst)}, every layer by no more than its quantization step allows"
        return Verdict.QUANTIZED, f"{words}{_changed(compared)}; quantization is taken as intended"
    return compared.verdict, f"accumulated rounding errors, no faulty layer: {_WITHIN}; outputs: {compared.reason}"


def localization(
    target: Network,
    known: Set[str],
    judged: Sequence[Judged],
    faults: Sequence[LocatedFault],
    compared: ComparedOutputs,
    options: Options,
    measured: Set[str],
    explained: Explained | None = None,
    beyond: str = "",
) -> Localization:
    """The verdict, and what it's taken from.

    Args:
        target: The network that can be cut, whose layers are counted.
        known: Its tensors that values are fed at.
        judged: All cuts.
        faults: The largest first.
        compared: The outputs of all batches that ran as a whole.
        options: As they were used.
        measured: Tensors of the side in question that have a cut, or that it's fed at.
        explained: Where the outputs' error comes from, if that was asked.
        beyond: In words, which layers only values of drawn inputs saturate.
    """
    rules = rules_of(faults, target.graph)
    within = compared.chosen and all(
        output.pair.reference in compared.chosen or output.decisive <= options.noise_margin * output.floor
        for output in compared.outputs
    )
    excused = fault_words(faults, rules) if faults and within and compared.verdict is Verdict.EQUIVALENT else ""
    if excused:
        faults, rules = (), ()
    errors = [item.full for item in judged if item.cut.pair.target in target.output_names.values()]
    errors += [fault.full_run_error for fault in faults if fault.target_tensor not in measured]
    worst = max(errors, default=0.0)
    coverage = coverage_of(target.graph, known, judged, None if explained is None else explained.share)
    verdict, reason = concluded(faults, rules, compared, explained, coverage, worst, beyond=beyond, excused=excused)
    floor = max((output.floor for output in compared.outputs), default=0.0)
    return Localization(
        verdict=verdict,
        reason=reason,
        faults=tuple(faults),
        output_error=worst,
        output_floor=floor,
        options=options,
        coverage=coverage,
        rules=rules,
    )


def _changed(compared: ComparedOutputs) -> str:
    """Which share of the top-1 predictions changed."""
    answers = [output.answers for output in compared.outputs if output.answers is not None]
    if not answers:
        return ""
    most = max(answers, key=lambda item: item.top1_differs / item.samples)
    share = most.top1_differs / most.samples
    return f"; {percent(share)} of the top-1 predictions changed ({most.top1_differs} of {most.samples})"


def fault_words(faults: Sequence[LocatedFault], rules: Sequence[Rule]) -> str:
    """Why a target is faulty, in a sentence.

    Args:
        faults: The largest first; at least one.
        rules: Those of them that are alike.
    """
    if rules:
        most, *others = rules
        known = {rule.words for rule in rules}
        alone = sum(any(words not in known for words, _ in fault.differences or (("", ""),)) for fault in faults)
        words = [f"{most.text} (`{most.layers[0]}` and others)", *(rule.text for rule in others)]
        more = f"and {alone} more fault{'s' * (alone > 1)}"
        return "; ".join([*words, *([more] if alone > 0 else [])])
    first = faults[0]
    where = f"`{(first.target_layers or first.source_layers or ('?',))[0]}`"
    more = f", and {len(faults) - 1} more faults" if len(faults) > 2 else ", and 1 more fault" * (len(faults) - 1)
    if first.kind == Kind.STRUCTURE and math.isinf(first.introduced_error):
        return f"{where}: {first.evidence[0]}{more}"
    if any(words in CLIPPING for words, _ in first.differences):
        return f"{first.words}{more}"
    if first.noise_floor < first.introduced_error < math.inf:
        return f"{where} adds an error of {percent(first.introduced_error)} itself{more}"
    return f"{where}: {first.words}{more}"


def _of_doubt(compared: ComparedOutputs, explained: Explained | None, coverage: Coverage) -> str:
    undecided = compared.verdict is Verdict.UNDECIDED
    told = "and the outputs don't tell" if undecided else "but the outputs are wrong"
    words = [f"no layer adds more than rounding error, {told}: {compared.reason}"]
    if explained is not None and explained.by_rounding:
        cuts = ", ".join(f"`{name}`" for name in explained.by_rounding[:_NAMED])
        words.append(f"rounding errors at {cuts} change the outputs as much as a fault would: try other inputs")
    elif explained is not None and not explained.before.differs:
        words.append("layers were compared on the first batch, whose outputs are right: later ones differ")
    if coverage.unseen:
        words.append(_not_compared(coverage))
    return "; ".join(words)


def _not_compared(coverage: Coverage) -> str:
    names = ", ".join(f"`{name}`" for name in coverage.unseen[:_NAMED])
    count = coverage.all_nodes - coverage.nodes
    return f"{count} of {coverage.all_nodes} operators weren't compared, such as {names}"


def coverage_of(graph: LayerGraph, known: Set[str], judged: Sequence[Judged], explained: float | None) -> Coverage:
    """Count what lies between the tensors that are known and those that tell something.

    Args:
        graph: The target's.
        known: Tensors that the source's values are fed at.
        judged: All cuts; not all tell something.
        explained: Share of the outputs' error that comes in at the pieces at fault; None where outputs are right.
    """
    told = [item.cut.pair.target for item in judged if item.tells]
    seen = {node.name for name in told for node in graph.between(known, [name])}
    unseen = [node for node in graph.nodes if node.name not in seen]
    return Coverage(
        nodes=len(seen),
        all_nodes=len(graph.nodes),
        parameters=sum(_size(node) for node in graph.nodes if node.name in seen),
        all_parameters=sum(map(_size, graph.nodes)),
        unseen=tuple(dict.fromkeys(node.layer for node in unseen)),
        explained=explained,
    )


def _size(node: Node) -> int:
    return sum(math.prod(parameter.shape) for parameter in node.parameters.values())


def of_other_sizes(
    source: Sequence[TensorSpec], inputs: Sequence[TensorSpec], wanted: Sizes, options: Options
) -> Localization:
    """The result for a target whose inputs are of other sizes than its source's.

    Args:
        source: The source's inputs.
        inputs: The target's own.
        wanted: Sizes that it would have to declare, from `sizes_wanted`.
        options: Of the localization.
    """
    words = sizes_in_words(source, inputs, wanted)
    names = [(one.name, two.name) for one, two in resized_inputs(source, inputs, wanted)]
    ours, theirs = zip(*names, strict=True)
    fault = LocatedFault.of_error(Kind.INPUT, (ours[0], ours), (theirs[0], theirs), (words,))
    return Localization(
        verdict=Verdict.FAULTY,
        reason=words,
        faults=(replace(fault, at_input=True),),
        output_error=math.inf,
        options=options,
    )
