"""The outputs of both networks, judged as every verb judges them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.judge.quantization import MOST_BITS
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.formats.networks.network import Network
from conrepair.ground.data.ragged import as_rows
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.ground.graph.operators import QUANTIZING
from conrepair.verdicts.evaluate.compare import ComparedOutputs, compare_outputs
from conrepair.verdicts.evaluate.evidence import evidence_of
from conrepair.verdicts.evaluate.run import HeldRun
from conrepair.verdicts.judging.arithmetic import tried
from conrepair.verdicts.judging.floor import HALF_PRECISIONS
from conrepair.verdicts.judging.measured import Measured


class AnswerPairs:
    """What both networks answer, batch by batch."""

    def __init__(self, reference: Reference, target: Network, options: Options, computes_in: str) -> None:
        """Begin without measurements.

        Args:
            reference: The network that is right.
            target: The network in question.
            options: Tolerance and intent.
            computes_in: The target's arithmetic; "" where nobody says.
        """
        self.computes_in = computes_in
        self._reference, self._target, self._options = reference, target, options
        self._few, self._precision = _precision(reference.network.graph)
        self._ours: dict[str, list[Array]] = {tensor: [] for tensor in reference.network.output_names.values()}
        self._theirs: dict[str, list[Array]] = {tensor: [] for tensor in target.output_names.values()}
        self._measured = Measured()
        self._feeds: list[Mapping[str, Array]] = []
        self._rows = 1

    def add(self, right: Activations, given: Activations) -> None:
        """Take the outputs of one batch.

        Args:
            right: Through the network that is right.
            given: Through the network in question.
        """
        self._rows = max((len(array) for array in right.feeds.values() if array.ndim), default=1)
        self._feeds.append(dict(right.feeds))
        for side, held in ((right, self._ours), (given, self._theirs)):
            side.compute(list(held))
            for tensor, batches in held.items():
                batches.append(np.array(side[tensor]))

    def first(self, source: str, target: str) -> tuple[Array, Array] | None:
        """Two outputs for the first batch; None for tensors that are none.

        Args:
            source: A tensor of the network that is right.
            target: A tensor of the network in question.
        """
        ours, theirs = self._ours.get(source), self._theirs.get(target)
        return (ours[0], theirs[0]) if ours and theirs else None

    def measure_rounding(self) -> None:
        """Judge by what rounding on the way does to the outputs, and by exact values, too, from now on."""
        self._measured = self._reference.measured(self._feeds, tried(self.computes_in))

    def compared(self, changed: Mapping[str, Array] | None = None) -> ComparedOutputs:
        """Judge the outputs of the batches that were taken.

        Args:
            changed: Tensors of the target for the first batch, among them its outputs, that are judged in place of
                all that was taken.
        """
        options, known, batches = self._options, self._measured, slice(1 if changed else None)
        taken = {tensor: [changed[tensor]] for tensor in self._theirs} if changed else self._theirs
        ours = {name: self._ours[tensor][batches] for name, tensor in self._reference.network.output_names.items()}
        theirs = {name: taken[tensor] for name, tensor in self._target.output_names.items()}
        vary = any(len({array.shape for array in held}) > 1 for held in (*ours.values(), *theirs.values()))
        right = _run("source", self._reference.network, ours, self._rows, vary=vary)
        given = _run("target", self._target, theirs, self._rows, vary=vary)
        other = functools.partial(self._other, vary=vary)
        return compare_outputs(
            replace(right, quantized=self._few, precision=self._precision),
            replace(given, quantized=options.quantized, precision=options.precision, computes_in=self.computes_in),
            options.tolerance,
            second_opinion=other([self._reference.second_outputs]),
            **evidence_of(
                {name: other(run[batches]) for name, run in known.runs.items() if name != "own"}, known.kernel
            ),
        )

    def _other(self, batches: Sequence[Mapping[str, Array] | None], *, vary: bool) -> HeldRun | None:
        """The source by other means, for the first batches; None where there's nothing."""
        given = list(filter(None, batches))
        if not given:
            return None
        held = {name: [batch[name] for batch in given] for name in given[0]}
        exact = any(array.dtype == np.float64 for arrays in held.values() for array in arrays)
        return replace(_run("second", self._reference.network, held, self._rows, vary=vary), exact=exact)


def _run(name: str, network: Network, held: Mapping[str, list[Array]], rows: int, *, vary: bool = False) -> HeldRun:
    tensors = network.graph.tensors
    count = rows * max((len(batches) for batches in held.values()), default=0)
    specs: list[TensorSpec] = []
    arrays: dict[str, Array] = {}
    lengths: dict[str, Array] = {}
    for output, end in network.output_names.items():
        tensor, batches = tensors[end], held.get(output)
        if not batches:
            continue
        dtype, keys = "string" if tensor.dtype == "object" else tensor.dtype, network.keys.get(output, ())
        specs.append(TensorSpec(output, batches[0].shape, dtype, tensor.quantization, keys=keys))
        row = batches[0].shape[1:]  # what's found in one sample may be more than in another behind an axis of samples
        if vary and not all(array.ndim and array.shape == (rows, *row) for array in batches):
            arrays[output], known = as_rows(batches)
            lengths[output] = np.zeros(count, np.int64)
            lengths[output][::rows] = known  # of a batch, whose first sample stands for all
        else:
            arrays[output] = _joined(batches, rows)
    return HeldRun(
        name=name,
        outputs=tuple(specs),
        folder=Path(),
        count=count,
        operators=len(network.graph.nodes),
        arithmetic=sum(node.op not in QUANTIZING for node in network.graph.nodes),
        rounds=any(tensor.quantization is not None for tensor in tensors.values())
        or any(node.op == "QuantizeLinear" for node in network.graph.nodes),
        ordered=network.ordered,
        channels=network.channels,
        inputs=tuple(
            TensorSpec(given, tensors[tensor].shape or (), tensors[tensor].dtype)
            for given, tensor in network.input_names.items()
        ),
        held=arrays,
        rows=lengths,
    )


def _joined(batches: list[Array], rows: int) -> Array:
    """Samples first; a result that has no axis of samples is one of a batch."""
    whole = all(array.ndim and len(array) == rows for array in batches)
    return np.concatenate(batches) if whole else np.stack(batches)


def _precision(graph: LayerGraph) -> tuple[bool, str]:
    """Whether most weights are in few bits, and the precision of most; of results, where these are narrower."""
    sizes: Counter[str] = Counter()
    for node in graph.nodes:
        for parameter in node.parameters.values():
            few = parameter.bits is not None and parameter.bits <= MOST_BITS
            sizes["few" if few else parameter.dtype] += int(np.prod(parameter.shape))
    most = sizes.most_common(1)[0][0] if sizes else "float32"
    if most != "few" and most not in HALF_PRECISIONS:
        results = Counter(graph.tensors[name].dtype for node in graph.nodes for name in node.outputs)
        most = results.most_common(1)[0][0] if results else most
    return most == "few", most if most in HALF_PRECISIONS else "float32"
