"""Judge candidates of a repair: the source is opened once, and each changed target is localized against it."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.localize import Found, Looked, localize_target
from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.localization.numbers import pairing
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.recipes.finding import find_recipe
from conrepair.diagnosis.localization.result import RecipeFinding
from conrepair.diagnosis.localization.run.activations import Activations, Isolation
from conrepair.diagnosis.localization.run.alone import errors_alone, is_unchanged, kept_pieces
from conrepair.diagnosis.localization.run.fed_model import FedModel, concrete
from conrepair.diagnosis.localization.run.measurement import Feeds
from conrepair.diagnosis.localization.run.opening import (
    OpenedNetwork,
    batch_size,
    feeds_of,
    open_model,
    reader_of,
    second_opinion,
)
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.diagnosis.repairs.criteria import computed, source_of
from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import Network
from conrepair.ground.data.feeds import batches
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.ground.runtime.errors import DataError
from conrepair.verdicts.judging.arithmetic import shaken

EXTREMES: Final[Mapping[str, float]] = {"zeros": 0.0, "small values": 1e-3, "large values": 1e3}
"""What pieces are fed besides: so many times the source's activations. An epsilon decides where numbers are small,
a bound where they are large, and whether anything is divided by nothing where there are none."""

_OVER_NOTHING = 1e-6  # root mean square of a result that should be zero
_HALF = {"float16", "bfloat16"}  # large values are beyond what the one holds, small ones below


def failing(
    right: Activations,
    target: Network,
    feeds: Mapping[str, Array],
    pairs: Sequence[Pair],
    ends: Sequence[Pair],
    margin: float,
) -> dict[str, str]:
    """Feed pieces of both networks other values, and compare what they give.

    Where the source's result is finite the target's must be, and as near as rounding there explains: what the source
    gives when all that it reads changes in its last places says how much that is.

    Args:
        right: A batch through the source.
        target: The network with what shall fix the pieces.
        feeds: Of the target's own inputs.
        pairs: What is fed.
        ends: What is computed from the nearest of those, and compared.
        margin: Times its floor, from which on an error is none of rounding.

    Returns:
        For pieces that aren't right there, by the source's tensors, where that is: a key of `EXTREMES`.
    """
    known = {pair.source: pair for pair in pairs}
    graph = right.network.graph
    fed = list(dict.fromkeys([*graph.inputs, *known]))
    right.compute([name for name in fed if name not in graph.inputs])
    found: dict[str, str] = {}
    half = any(tensor.dtype in _HALF for tensor in target.graph.tensors.values())
    for name, factor in EXTREMES.items():
        left = [end for end in ends if end.source not in found]
        if not left or (half and factor):
            continue
        fetch = functools.partial(_multiplied, factor=factor, fetch=right.__getitem__, constant=graph.unfed)
        own = {key: _times(array, factor) for key, array in feeds.items()}
        wanted = list(dict.fromkeys(end.source for end in left))
        expected = dict(Pieces.between(right.network, fed, wanted).run(fetch))
        disturbed = dict(Pieces.between(right.network, fed, wanted).run(functools.partial(_shaken, fetch=fetch)))
        given = dict(Isolation(target, list(known.values()), [end.target for end in left]).run(fetch, own))
        for end in left:
            one, two = expected[end.source], given[end.target]
            if two.size != one.size or one.dtype.kind != "f":
                continue  # what computes something of another size is judged elsewhere
            limit = max(pairing.EQUAL, margin * _error(one, disturbed[end.source].reshape(one.shape)))
            if not _error(one, end.layout.to_source(two).reshape(one.shape)) <= limit:
                found[end.source] = name
    return found


def _multiplied(name: str, *, factor: float, fetch: Callable[[str], Array], constant: frozenset[str]) -> Array:
    array = fetch(name)
    return array if name in constant else _times(array, factor)


def _shaken(name: str, *, fetch: Callable[[str], Array]) -> Array:
    return shaken(fetch(name))


def _times(array: Array, factor: float) -> Array:
    """Real numbers multiplied; what's infinite (a mask) stays so, and whole numbers aren't values."""
    if array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isfinite(array), array * array.dtype.type(factor), array)


def _error(expected: Array, given: Array) -> float:
    """Relative L2 where the source's result is finite; infinite where the other one isn't there."""
    finite = np.isfinite(expected)
    one, two = expected[finite].astype(np.float64), given[finite].astype(np.float64)
    if not np.isfinite(two).all():
        return float("inf")
    size, difference = (float(np.sqrt(np.mean(np.square(item)))) if one.size else 0.0 for item in (one, one - two))
    if not size:
        return 0.0 if difference <= _OVER_NOTHING else float("inf")
    return difference / size


@dataclasses.dataclass(frozen=True)
class Alone:
    """What a piece of a changed target introduces, run alone.

    Attributes:
        error: That is judged.
        right: Whether rounding explains it.
        nearer: Whether it's less than before the change.
    """

    error: float
    right: bool
    nearer: bool


class Bench:
    """Judges targets by localization, on a few samples.

    Attributes:
        target: As it came, with what it's fed now.
        samples: How many are looked at.
    """

    def __init__(
        self, source: FedModel, target: FedModel, folder: Path, options: Options, looked: Looked | None = None
    ) -> None:
        """Open the source.

        Args:
            source: The model that is right.
            target: The model in question, as it came.
            folder: For activations.
            options: Samples and margins.
            looked: What a localization came to, which isn't done again where it's of these.

        Raises:
            ModelLoadError: if the source can't be opened.
            DataError: if both models have batches of their own.
        """
        self._source, self.target, self._folder, self._options = source, target, folder, options
        self._known: Found | None = None
        self._last: tuple[Model, OpenedNetwork] | None = None
        self.samples = min(source.data.count, target.data.count, options.samples)
        self._size = batch_size(source, target, options.batch_size, self.samples)
        if looked is not None and looked.is_of(source, target, options):
            self._go_on(looked)
            return
        self._ours = ours = open_model(source.model, concrete(source, self._size), folder / "source")
        self._reference = Reference(
            ours.network, folder / "reference", second_opinion=lambda: second_opinion(ours), keep=True
        )

    @property
    def is_of_any_length(self) -> bool:
        """Whether the target takes inputs of other sizes than these, the batch apart."""
        axes = self.target.axes
        return any(
            isinstance(size, str)
            for spec in self.target.inputs
            for axis, size in enumerate(spec.shape)
            if axis != axes.get(spec.name, 0)
        )

    @functools.cached_property
    def editor(self) -> Editor:
        """The editor of the unrepaired target, opened when it's first asked for. It changes nothing; its `again` may.

        Raises:
            UsageError: if there's no editor for its format.
            ModelLoadError: if it can't be read to be changed.
        """
        return open_editor(self.target.model)

    @property
    def graph(self) -> LayerGraph:
        """The source's."""
        return self._ours.network.graph

    def feed(self, target: FedModel) -> None:
        """Feed targets by another recipe from now on.

        Args:
            target: As it came, with other data or another recipe.
        """
        self.target, self._known = target, None

    def localize(self, model: Model) -> Found:
        """Judge a target; the unrepaired one is localized once.

        Args:
            model: The target, or a changed copy of it.

        Raises:
            ModelLoadError: if it can't be opened.
            InferenceError: if it can't be run.
        """
        if model != self.target.model:
            # Pieces are fed other values only where that showed something: for most targets it's nothing.
            latent = self._options.latent_counts or (self._known is not None and self._known.latent > 0)
            return self._localized(model, dataclasses.replace(self._options, latent=latent))
        if self._known is None:
            self._known = self._localized(model, self._options)
        return self._known

    def look_alone(self, model: Model, found: Found, pieces: Sequence[Guilty]) -> Mapping[str, Alone]:
        """Run pieces of a changed target alone: no judgement of all the rest.

        Args:
            model: A changed copy of the target.
            found: What localization said of the target before; its cuts are fed.
            pieces: Of that.

        Returns:
            By the source's tensors at the ends of the pieces, those of which that tells anything. It doesn't where
            the change moved tensors, or lies before what's fed, or where only outputs show the error.

        Raises:
            ModelLoadError: if it can't be opened.
            InferenceError: if it can't be run.
        """
        margin = self._options.noise_margin
        shown = [
            piece
            for piece in pieces
            if piece.judged.effect is None and piece.judged.introduced > margin * piece.judged.floor
        ]
        if self._options.quantized or not shown:
            return {}
        theirs = self._opened(model)
        ends = [piece.judged.cut.pair for piece in shown]
        kept = kept_pieces(found.graph, theirs.network.graph, found.alignment.pairs, ends)
        if kept is None or theirs.network.original is not None:
            return {}
        errors = errors_alone(self._reference, theirs.network, *kept, self._feeds(model, theirs))
        seen = {}
        for piece in shown:
            source = piece.judged.cut.pair.source
            before, now = piece.judged.cut.introduced, errors[source]
            if not is_unchanged(before, now):
                nearer = (now.mismatched, now.error) < (before.mismatched, before.error)
                seen[source] = Alone(now.error, now.error <= margin * piece.judged.floor, nearer)
        right = [pair for pair in kept[1] if pair.source in seen and seen[pair.source].right]
        for source in self._failing(theirs, self._feeds(model, theirs), kept[0], right):
            seen[source] = dataclasses.replace(seen[source], right=False)
        return seen

    def elsewhere(self, model: Model, found: Found, pieces: Sequence[Guilty]) -> Mapping[str, str]:
        """Whether what fixes pieces does so for values that no sample brings.

        Args:
            model: The target, or a changed copy of it.
            found: What localization says of it.
            pieces: That are right now, on samples.

        Returns:
            For those that aren't right then, by the source's tensors at their ends: what they were fed.

        Raises:
            ModelLoadError: if it can't be opened.
            InferenceError: if it can't be run.
        """
        theirs = self._opened(model)
        if self._options.quantized or theirs.network.original is not None:
            return {}  # which hold what they were calibrated on
        ends = {source_of(piece) for piece in pieces}
        inside = frozenset().union(*map(computed, pieces)) if pieces else frozenset()
        pairs = [pair for pair in found.alignment.pairs if pair.source not in inside or pair.source in ends]
        wanted = [pair for pair in found.alignment.pairs if pair.source in ends]
        return self._failing(theirs, self._feeds(model, theirs), pairs, wanted)

    def range_of(self, tensor: str, *, of_others: bool = False) -> tuple[float, float]:
        """The smallest and the largest value of a tensor of the source, over all samples that are localized by.

        Args:
            tensor: Of the source's graph. A target must have been localized.
            of_others: Whether as far as other samples' values are likely to lie.
        """
        return self._reference.range_of(tensor, of_others=of_others)

    def find_recipe(self, model: Model, seconds: float, *, output_error: float) -> RecipeFinding:
        """Search recipes for a target.

        Args:
            model: The target, or a changed copy of it.
            seconds: That it may take.
            output_error: Of its answers as it's fed now.

        Raises:
            DataError: if a photo can't be read, or the target doesn't take photos.
        """
        source, target = self._source, self.target
        if source.recipe is None or target.recipe is None:
            raise DataError("recipes are searched for photos")
        options = dataclasses.replace(self._options, recipe_seconds=min(seconds, self._options.recipe_seconds))
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            theirs = open_model(model, concrete(dataclasses.replace(target, model=model), self._size), Path(name))
            rows = batches(reader_of(source, self._ours, self.samples), self._ours.inputs, self._size)
            photos = target.photos[: self.samples]
            recipes = source.recipe, target.recipe
            return find_recipe(self._ours, theirs, rows, photos, recipes, options, output_error=output_error)

    def _failing(
        self, theirs: OpenedNetwork, feeds: Iterable[Feeds], pairs: Sequence[Pair], ends: Sequence[Pair]
    ) -> Mapping[str, str]:
        """Pieces that aren't right for other values than the samples', by the source's tensors."""
        if not ends:
            return {}
        if self._source.recipe != self.target.recipe:
            # Photos are prepared otherwise for either: one factor isn't the same for both.
            inputs = {*theirs.network.graph.inputs}
            pairs = [pair for pair in pairs if pair.target not in inputs]
            graph = theirs.network.graph
            known = {pair.target for pair in pairs} | inputs
            ends = [
                end
                for end in ends
                if inputs.isdisjoint(name for node in graph.between(known, [end.target]) for name in node.inputs)
            ]
        ours, own = next(iter(feeds))
        right = self._reference.batch(0, ours)
        return failing(right, theirs.network, own, pairs, ends, self._options.noise_margin) if ends else {}

    def _go_on(self, looked: Looked) -> None:
        """Take over the opened networks and the localization of the unrepaired target."""
        self._ours, theirs = looked.opened
        self._reference, self._known = looked.reference, looked.found
        self._last = self.target.model, theirs
        feeds = self._feeds(self.target.model, theirs)
        self._reference.hold(self._folder / "reference", (ours for ours, _ in feeds))

    def _feeds(self, model: Model, theirs: OpenedNetwork) -> Iterable[Feeds]:
        """What the source and a target are fed, batch by batch."""
        target = dataclasses.replace(self.target, model=model)
        return feeds_of((self._source, self._ours), (target, theirs), self._size, self.samples)

    def _localized(self, model: Model, options: Options) -> Found:
        theirs = self._opened(model)
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            feeds = self._feeds(model, theirs)
            return localize_target(self._reference, theirs.network, feeds, Path(name), options)

    def _opened(self, model: Model) -> OpenedNetwork:
        """A target, opened; the last one is held."""
        if self._last is None or self._last[0] != model:
            self._last = None  # so that no two are held at a time
            target, folder = dataclasses.replace(self.target, model=model), self._folder / "opened"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            self._last = model, open_model(model, concrete(target, self._size), folder)
        return self._last[1]
