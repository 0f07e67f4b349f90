"""Compare changed patterns, plain against a system's setting, in this process: what's suspect is judged elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from conrepair.ground.metrics.ulps import is_number
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.draft import Draft as Subject
from conrepair_lab.fuzz.oracles.answers import faces
from conrepair_lab.fuzz.oracles.numbers import differing, far_apart
from conrepair_lab.fuzz.screen.changes import Change, changes, pairs
from conrepair_lab.fuzz.suspicion import REFUSAL, REFUSED, Suspicion
from conrepair_lab.fuzz.trial import LOAD, RUN, how_ended
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.onnx_form import RefusedError, model_of, run
from conrepair_lab.generate.settings.tensors import numpy_type
from conrepair_lab.generate.values.drawn import drawn_values
from conrepair_lab.systems.firing import fired, singled_out
from conrepair_lab.systems.registry import Entry
from conrepair_lab.systems.system import Setting

SINGLE, FURTHER, PAIRS = range(3)
"""Steps: single changes of a pattern's usual variant, then of the others, then two changes at a time."""

_OF_A_SORT = 2  # values of one attribute that take part in pairs
_OF_PAIRS = 2  # variants
_STEPS = 1.5  # of quantizing, within which a result may be rounded to the next one


@dataclass(frozen=True)
class Seen:
    """A network that a system's setting computes otherwise than nobody's optimizations.

    Attributes:
        case: It, with its declared outputs.
        suspicion: What is seen.
        words: How it was changed.
        causes: Optimizations each of which is needed for it, where that can be asked.
        plainly: Whether the system's plain setting shows it, too.
    """

    case: Case
    suspicion: Suspicion
    words: tuple[str, ...]
    causes: tuple[str, ...] = ()
    plainly: bool | None = None


@dataclass
class Screener:
    """Compares the networks of a pattern.

    Attributes:
        asked: The system and its setting.
        folder: For files.
        step: Of `SINGLE`, `FURTHER` and `PAIRS`.
        allows: Whether a changed network is one that's wished.
        unusual: Whether networks count that aren't finite.
        computed: How many networks ONNX Runtime computes.
        fired: In how many variants an optimization did something.
    """

    asked: Entry
    folder: Path
    step: int = SINGLE
    allows: Callable[[onnx.ModelProto], bool] = lambda _: True
    unusual: bool = False
    computed: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    _known: set[tuple[object, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Make a folder that's emptied now and then."""
        self._room = self.folder / "room"
        self._room.mkdir(exist_ok=True)

    def networks(self, drafts: Iterator[Draft]) -> Iterator[tuple[Subject, tuple[Change, ...]]]:
        """The networks of a step: variants, and how each is changed.

        Args:
            drafts: Of a pattern, the usual one first.
        """
        variants = map(subject_of, drafts)
        if self.step == PAIRS:
            for variant in itertools.islice(variants, _OF_PAIRS):
                yield from ((variant, pair) for pair in pairs(self._alive(variant)))
            return
        for variant in itertools.islice(variants, *((0, 1) if self.step == SINGLE else (1, None))):
            yield variant, ()
            yield from ((variant, (change,)) for change in changes(variant))

    def _alive(self, variant: Subject) -> Iterator[Change]:
        """Changes that leave something to be done to what optimizations see in a variant: two may be one too many."""
        counts, whole = Counter[str](), self._fired(variant)
        for change in changes(variant):
            if counts[change.sort] < _OF_A_SORT and whole & self._fired(changed(variant, (change,))):
                counts[change.sort] += 1
                yield change

    def _fired(self, subject: Subject) -> set[str]:
        if self.asked.system != "ort" or self.asked.release:
            return {""}
        with contextlib.suppress(Exception):  # an optimization that fails is seen where networks are compared
            return fired(subject.model)
        return set()

    def seen(self, subject: Subject, made: Sequence[Change] = ()) -> Seen | None:
        """Compare a network.

        Args:
            subject: Before it's changed.
            made: The changes.

        Returns:
            None where nothing is wrong, it's no network, or something alike was seen before.
        """
        there = changed(subject, made)
        if not self.allows(there.model):
            return None
        names = [item.name for item in there.model.graph.output]
        try:
            plain = run(there.model, there.inputs, names)
        except RefusedError:
            return None
        if not made:
            self.fired.update(self._fired(there) - {""})
        if not all(isinstance(value, np.ndarray) for value in plain.values()):
            return None
        if not self.unusual and not all(np.isfinite(value).all() for value in plain.values() if is_number(value)):
            return None
        self.computed += 1
        declare(there.model, plain)
        case = Case(there.model.SerializeToString(), there.inputs)
        found = self._suspicion(case, plain, self.asked.chosen)
        if found is None:
            return None
        sorts = tuple(change.sort for change in made)
        operators = {node.op_type for node in there.model.graph.node}
        alike = found.kind, found.stage, found.words_without(operators) if found.kind == "exception" else ""
        if (alike, sorts) in self._known:
            return None
        self._known.add((alike, sorts))
        causes, plainly = self._causes(case, plain, found)
        if plainly and (self.asked.system, self.asked.release) == ("ort", ""):
            return None  # it's what was computed a moment ago: memory that nobody wrote
        if (alike, causes) in self._known:  # nothing was needed for it
            return None
        if not made:
            self._known.add((alike, causes))
        return Seen(case, found, tuple(change.words for change in made), causes, plainly)

    def _suspicion(self, case: Case, plain: Mapping[str, Array], setting: Setting) -> Suspicion | None:
        stage = LOAD
        try:
            answer = self.asked.runs.quick(case.network, setting, self._room)
            stage = RUN
            given = answer(case.inputs)
        except Exception as error:  # noqa: BLE001 (libraries raise whatever their assumptions break into)
            found = how_ended(stage, error, case)
            if found.kind != REFUSED:
                return found
            refusal = dataclasses.replace(found, kind="exception", stage=REFUSAL)
            return refusal if self.asked.runs.alike else None
        finally:
            if any(self._room.iterdir()):  # rarely: sessions take networks from memory, and folders are slow
                shutil.rmtree(self._room)
                self._room.mkdir()
        step = _STEPS * _largest_step(case.model)
        allowed = {name: far_apart(name, right) + step for name, right in plain.items() if right.dtype.kind in "fiub"}
        return next(itertools.chain(faces(given, plain), differing(given, plain, allowed)), None)

    def _causes(self, case: Case, plain: Mapping[str, Array], seen: Suspicion) -> tuple[tuple[str, ...], bool | None]:
        """Optimizations without each of which it isn't seen, and whether it is with all of them left out."""
        system, setting = self.asked.runs, self.asked.chosen
        beside = system.plain_beside(setting)
        plainly = None if beside is None else seen.same(self._suspicion(case, plain, beside))
        if plainly or self.asked.system != "ort":
            return (), plainly
        there = case.file(self._room)
        switches = {item.name: item for item in system.switches(there, setting, self._room)}

        def healed(off: Collection[str]) -> bool:
            other = system.without(setting, [switches[name] for name in off])
            return not seen.same(self._suspicion(case, plain, other))

        return tuple(sorted(singled_out(list(switches), healed))), plainly


def changed(subject: Subject, made: Sequence[Change]) -> Subject:
    """A network with changes.

    Args:
        subject: Stays as it is.
        made: The changes.
    """
    there = subject.copy()
    for change in made:
        change.apply(there)
    return there


def declare(model: onnx.ModelProto, answers: Mapping[str, Array]) -> None:
    """Let a network's outputs say what they are.

    Args:
        model: Any.
        answers: By output.
    """
    for item in model.graph.output:
        array = answers[item.name]
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        item.CopyFrom(helper.make_tensor_value_info(item.name, kind, array.shape))


def _largest_step(model: onnx.ModelProto) -> float:
    """The largest scale with which a network quantizes; 0 for none."""
    constants = {item.name: item for item in model.graph.initializer}
    scales = [constants.get(node.input[1]) for node in model.graph.node if node.op_type == "QuantizeLinear"]
    arrays = (numpy_helper.to_array(item) for item in scales if item is not None)
    return max((float(np.abs(array).max(initial=0)) for array in arrays), default=0.0)


def subject_of(draft: Draft) -> Subject:
    """A network to change, with values for its inputs.

    Args:
        draft: Of a pattern.
    """
    generator = np.random.default_rng(0)
    known = {name: item.type for name, item in draft.tensors.items() if item.type.sized}
    types = {name: helper.np_dtype_to_tensor_dtype(numpy_type(made.dtype)) for name, made in known.items()}
    shapes = {name: made.shape for name, made in known.items()}
    inputs = {
        name: drawn_values(item.type, item.values, generator, item.wish) for name, item in draft.sources.items()
    }
    return Subject(model_of(draft, {}, typed=False), inputs, {}, types=types, shapes=shapes)
