"""A network, its inputs and options, as one value; and the folder that holds it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.external_data_helper import uses_external_data

from conrepair.formats.models.identity import model_sha256, model_tensors
from conrepair.formats.models.model import Model
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.data.tensors import opened_arrays
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.files.ordinary_file import read_ordinary
from conrepair.ground.runtime.files.whole import canonical_json, whole_output, write_json

Array = np.ndarray[Any, Any]
Options = Mapping[str, Mapping[str, Any]]
"""JSON values by system and name; what isn't there has the system's default.

Beside them, `conrepair_lab.cases.sizes.SIZES`.
"""

MODEL, INPUTS, ABOUT = "model.onnx", "inputs.npz", "case.json"
_VERSION = 1
_LARGEST = (1 << 31) - 1  # bytes that Protobuf can read
_HEXADECIMAL = 64


@dataclass(frozen=True)
class Case:
    """An immutable network with its inputs and options, on which something may fail.

    Attributes:
        network: An ONNX model with its weights inside, serialized.
        inputs: By name, in the network's own types.
        options: Of systems.
    """

    network: bytes
    inputs: Mapping[str, Array]
    options: Options = field(default_factory=dict)

    @classmethod
    def of(cls, model: onnx.ModelProto, inputs: Mapping[str, Array], options: Options | None = None) -> Case:
        """Make a case of a model, which is copied.

        Args:
            model: With its weights inside.
            inputs: By name.
            options: Of systems.
        """
        return cls(model.SerializeToString(deterministic=True), dict(inputs), dict(options or {}))

    @property
    def model(self) -> onnx.ModelProto:
        """The network, read anew."""
        return onnx.load_from_string(self.network)

    def file(self, folder: Path) -> Model:
        """The network as the file that systems are given, written to a folder that exists."""
        path = folder / MODEL
        path.write_bytes(self.network)
        return Model("onnx", str(path), model_sha256(path))

    def about(self) -> dict[str, Any]:
        """The content of `case.json`: names and hashes of all parts of the case."""
        return {
            "version": _VERSION,
            "model": hashlib.sha256(self.network).hexdigest(),
            "inputs": {
                name: {"type": array.dtype.name, "shape": list(array.shape), "sha256": _hash(array)}
                for name, array in sorted(self.inputs.items())
            },
            "options": {system: dict(values) for system, values in self.options.items()},
        }

    @property
    def key(self) -> str:
        """The hash of the case: the same for equal cases on every machine."""
        return hashlib.sha256(canonical_json(self.about()).encode()).hexdigest()


def written(case: Case, folder: Path) -> None:
    """Write a case.

    Args:
        case: Which.
        folder: That isn't there yet, and appears whole.

    Raises:
        StorageError: if it can't be written.
        DataError: if there's no way to write its inputs or options without pickles or beyond JSON.
    """
    strange = [name for name, array in case.inputs.items() if array.dtype.hasobject]
    if strange:
        raise DataError(
            f"the case's inputs {', '.join(strange)} hold Python objects. Give arrays of numbers or text."
        )
    about = case.about()
    try:
        canonical_json(about)
    except (TypeError, ValueError) as error:
        raise DataError(f"the case's options aren't JSON: {error}. Give text, finite numbers, lists.") from error
    with whole_output(folder) as made:
        made.mkdir()
        (made / MODEL).write_bytes(case.network)
        write_arrays(made / INPUTS, case.inputs)
        write_json(made / ABOUT, about)


def read(folder: Path) -> Case:
    """Read a case that may come from anybody: nothing is unpickled, and all must be as its hashes say.

    Args:
        folder: From `written`.

    Raises:
        DataError: if something is missing, damaged, too large, or isn't what it says.
    """
    try:
        told = value_of(read_json_text(folder / ABOUT))
        network = read_ordinary(folder / MODEL, _LARGEST)
        model = onnx.load_from_string(network)
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} holds no case that can be read: {error}. Copy the whole folder again.") from error
    except Exception as error:  # Protobuf's own type, which it doesn't always export
        raise DataError(f"{folder / MODEL} is no ONNX model: {error}. Copy the whole folder again.") from error
    if any(map(uses_external_data, model_tensors(model))):
        raise DataError(f"{folder / MODEL} reads weights from another file, which a case never does. Don't use it.")
    _check(told, folder)
    stored = opened_arrays(folder / INPUTS) if told["inputs"] else {}
    case = Case(network, _typed(stored, told["inputs"], folder), told["options"])
    if (about := case.about()) != told:
        wrong = next(name for name in about if about[name] != told.get(name))
        raise DataError(
            f"{folder}: {wrong} isn't what {ABOUT} says. A file was changed or is of another case: copy it again."
        )
    return case


def _check(told: Any, folder: Path) -> None:
    """Whether a document has the form of `about`.

    Raises:
        DataError: if it hasn't.
    """
    where = f"{folder / ABOUT}"
    if not isinstance(told, dict) or set(told) != {"version", "model", "inputs", "options"}:
        raise DataError(f"{where} isn't about a case: it has to have version, model, inputs and options.")
    if told["version"] != _VERSION:
        raise DataError(f"{where} is of version {told['version']!r}; {_VERSION} can be read. Use a later release.")
    inputs, options = told["inputs"], told["options"]
    if not isinstance(inputs, dict) or not all(map(_is_input, inputs.values())):
        raise DataError(f"{where}: its inputs have to have a type, a shape and a hash each.")
    if not isinstance(options, dict) or not all(isinstance(item, dict) for item in options.values()):
        raise DataError(f"{where}: its options have to be objects, one for a system.")


def _is_input(told: Any) -> bool:
    if not isinstance(told, dict) or set(told) != {"type", "shape", "sha256"}:
        return False
    kind, shape, known = told["type"], told["shape"], told["sha256"]
    sizes = isinstance(shape, list) and all(isinstance(size, int) and size >= 0 for size in shape)
    return sizes and isinstance(kind, str) and isinstance(known, str) and len(known) == _HEXADECIMAL


def _typed(stored: Mapping[str, Array], told: Mapping[str, Any], folder: Path) -> dict[str, Array]:
    """Arrays in the types that they were written in: NumPy's format knows no bfloat16."""
    if set(stored) != set(told):
        raise DataError(f"{folder / INPUTS} has other inputs than {ABOUT} says. Copy the whole folder again.")
    found = {}
    for name, array in stored.items():
        wanted = told[name]["type"]
        if array.dtype.kind != "V":
            found[name] = array
            continue
        try:
            kind = numpy_dtype(wanted)
            found[name] = np.frombuffer(array.tobytes(), kind, math.prod(array.shape)).reshape(array.shape)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise DataError(f"{folder / INPUTS}: {name} is no {wanted}: {error}. Copy it again.") from error
    return found


def _hash(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
