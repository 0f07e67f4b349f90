"""Finished networks: an ONNX model, inputs, expected outputs, a description; and the blocks that they are made in.

Each block follows from the seed and its number alone, whoever makes it.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import importlib.metadata
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx

import conrepair
from conrepair.formats.onnx.load.border import plain_border
from conrepair.ground.data.stored_values import fileable
from conrepair.ground.intake.data import write_arrays
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.functions import NONE, Functions
from conrepair_lab.generate.growing import fitting
from conrepair_lab.generate.judging import optimized, refereed
from conrepair_lab.generate.narrowing.table import Acceptance, Narrowed
from conrepair_lab.generate.networks import NOTHING, GeneratedNetwork, Material, NotMadeError, made
from conrepair_lab.generate.onnx_form import RefusedError, accepted
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

BLOCK = 25
"""Networks of a block: what guides them towards diversity are those before them in it."""

_STREAMS = 3
"""Of random numbers, for each place: the next one where nothing that the one before draws can be computed."""


def block(
    wishes: Wishes,
    seed: int,
    number: int,
    support: Support,
    count: int = BLOCK,
    without: Collection[int] = (),
    material: Material = NOTHING,
) -> Iterator[GeneratedNetwork | NotMadeError]:
    """Make the networks of a block.

    Args:
        wishes: What they should be like.
        seed: Of all that's drawn.
        number: Of the block, from 0.
        support: Element types of the runtime that computes them.
        count: How many there are; the last block may have fewer.
        without: Places of those that aren't made, since they ended a process.
        material: What they're made of besides specifications.

    Yields:
        Each network, or why there is none.
    """
    seen = Diversity(wishes.operators)
    turns = _in_turn(fitting(wishes), seed) if wishes.nodes == 1 and material == NOTHING else ()
    for place in range(count):
        if place in without:
            yield NotMadeError("it ends the process")
            continue
        name = f"{seed}/{number}/{place}"  # seeds of texts are the same on every machine
        streams = (Random(f"{name}/{stream}" if stream else name) for stream in range(_STREAMS))
        wished = [wishes] * _STREAMS
        if turns:  # where nothing comes of the operator whose turn it is, another one may be in its place
            wished[0] = replace(wishes, operators=(turns[(number * BLOCK + place) % len(turns)],))
        yield _first(zip(wished, streams, strict=True), support, seen, material)


@cache
def _in_turn(names: tuple[str, ...], seed: int) -> tuple[str, ...]:
    """Operators in an order that the seed says: those of networks of one operator."""
    return tuple(Random(f"{seed}/order").sample(names, len(names)))


def _first(
    drawn: Iterable[tuple[Wishes, Random]], support: Support, seen: Diversity, material: Material
) -> GeneratedNetwork | NotMadeError:
    """What the first stream gives that gives a network; else why none does."""
    reasons: list[str] = []
    for wishes, random in drawn:
        try:
            return made(wishes, random, support, seen, material)
        except NotMadeError as error:
            reasons.append(str(error))
    return NotMadeError("; then ".join(dict.fromkeys(reasons)))


MODEL, INPUTS, OUTPUTS, ABOUT = "model.onnx", "inputs.npz", "outputs.npz", "model.json"

_LIBRARIES = ("numpy", "onnx", "onnxruntime", "z3-solver")


@dataclass(frozen=True)
class Generated:
    """A network with inputs and outputs.

    Attributes:
        model: The network.
        inputs: By name, in the model's order.
        outputs: By name, in the model's order, without optimizations of ONNX Runtime.
        about: What is in it, as JSON.
    """

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray[Any, Any]]
    outputs: dict[str, np.ndarray[Any, Any]]
    about: dict[str, Any]

    def judged(self) -> Generated:
        """With what ONNX Runtime's optimizations make of it."""
        verdict = optimized(self.model, self.inputs, self.outputs, self.about["coarsest"])
        return Generated(self.model, self.inputs, self.outputs, self.about | {"optimized": verdict})

    def refereed(self) -> Generated:
        """With what ONNX's reference says of the outputs."""
        verdict = refereed(self.model, self.inputs, self.outputs, self.about["coarsest"])
        return Generated(self.model, self.inputs, self.outputs, self.about | {"reference": verdict})

    def write(self, folder: Path) -> None:
        """Write the network into a folder, `ABOUT` last."""
        (folder / MODEL).write_bytes(self.model.SerializeToString(deterministic=True))
        write_arrays(folder / INPUTS, self.inputs)
        write_arrays(folder / OUTPUTS, self.outputs)
        self.write_about(folder)

    def write_about(self, folder: Path) -> None:
        """Write what is in it, whole: a line for each sort of thing."""
        new = folder / f".{ABOUT}"
        lines = (f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in self.about.items())
        new.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        new.replace(folder / ABOUT)


def generated(network: GeneratedNetwork, seed: int, index: int) -> Generated:
    """Finish a network: describe it, and give it inputs and outputs of types that NumPy has.

    A tensor of bfloat16 becomes one of float32 there, with a Cast: NumPy's files and ONNX Runtime's feeds have none.

    Args:
        network: Of a block.
        seed: Of the block.
        index: Of the network among all of the seed.

    Raises:
        RefusedError: if the ONNX checker doesn't take it.
    """
    draft, model = network.draft, network.model
    plain_border(model)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise RefusedError(f"the ONNX checker: {error}") from error
    inputs, outputs = (
        {name: fileable(array) for name, array in arrays.items()} for arrays in (network.inputs, network.answers)
    )
    parts, seen = sorted(network.parts), Diversity(())
    seen.add(draft)
    about = {
        "seed": seed,
        "index": index,
        "versions": dict(versions()),
        "opset": draft.opset,
        **({"from": network.real, "changes": list(network.changes)} if network.real else {}),
        "operators": dict(sorted(collections.Counter(node.op for node in draft.nodes).items())),
        "forms": [name for name in parts if name in forms()],
        "patterns": [name for name in parts if name not in forms()],
        "diversity": {
            "edges": len(seen.edges),
            "settings": sum(map(len, seen.settings.values())),
            "ancestries": len(seen.ancestries),
        },
        "inputs": {name: _described(array) for name, array in inputs.items()},
        "outputs": {name: _described(array) for name, array in outputs.items()},
        "weights": list(network.weights),
        "symbolic": {name: list(sizes) for name, sizes in (network.open or {}).items()},
        "extremes": list(network.values.ends),
        "seen": seen.as_json(),
        "coarsest": network.coarsest,
    }
    return Generated(model, inputs, outputs, about)


def each_generated(
    wishes: Wishes,
    seed: int,
    count: int | None = None,
    material: Material = NOTHING,
    functions: Functions = NONE,
    taken: Mapping[str, Acceptance] | None = None,
    types: Mapping[str, list[dict[str, str]]] | None = None,
) -> Iterator[Generated]:
    """Make networks in this process.

    Args:
        wishes: What they should be like.
        seed: Of all of them.
        count: How many are tried; None for no end.
        material: What they're made of besides specifications.
        functions: The user's own.
        taken: By operator, what they're narrowed to.
        types: By operator, element types that ONNX Runtime takes, as far as that's known.

    Yields:
        Those that are valid, and kept.
    """
    support = functions.narrowed(Narrowed(Probed(wishes.opset, accepted, types), taken or {}))
    for number in itertools.count() if count is None else range(-(-count // BLOCK)):
        size = BLOCK if count is None else min(BLOCK, count - number * BLOCK)
        for place, network in enumerate(block(wishes, seed, number, support, size, material=material)):
            if isinstance(network, GeneratedNetwork):
                with contextlib.suppress(RefusedError):
                    found = generated(network, seed, number * BLOCK + place)
                    functions.keep(found)
                    yield found


@cache
def versions() -> Mapping[str, str]:
    """What a seed's networks depend on: libraries, and the sources of this package, its specifications included."""
    own, ground = hashlib.sha256(), Path(conrepair.__file__).parent / "ground"
    for folder in (ground / "equations", Path(__file__).parent, ground / "operators"):
        for file in sorted(file for file in folder.rglob("*") if file.suffix in {".py", ".gz"}):
            own.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {"conrepair": conrepair.__version__, "specifications": own.hexdigest()[:16], **libraries}


def _described(array: np.ndarray[Any, Any]) -> str:
    return f"{array.dtype.name}{list(array.shape)}"
