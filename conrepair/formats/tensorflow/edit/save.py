"""Write a changed function as a SavedModel with the same signatures, or as a frozen graph."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.tensorflow.edit.file import TensorFlowFile, pieces_of
from conrepair.formats.tensorflow.read.pieces import data_inputs
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.files.whole import whole_output
from conrepair.ground.runtime.words import natural_order

_CHECKPOINT = Path("variables") / "variables"
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"
_WRITTEN = {"saved_model.pb", "variables", "fingerprint.pb", "keras_metadata.pb"}  # the last numbers the old objects
_OWN = {"signatures", "_self_saveable_object_factories"}  # what saving gives every module


def save_saved_model(file: TensorFlowFile, original: Path, path: Path) -> None:
    """Write a SavedModel.

    Where only numbers of variables changed, the folder is copied, and its checkpoint has the new numbers. Else the
    function is written anew under its signature's name, and under those that computed the same; other signatures,
    variables, assets and files that others put into the folder stay as they are.

    Args:
        file: The changed function.
        original: The folder that it came from.
        path: Appears whole.

    Raises:
        NotEditableError: if the function reads tables or the like.
    """
    keys = None if file.reshaped else _keys_of(file, original)
    with whole_output(path) as temporary:
        if keys is None:
            _save_anew(file, temporary)
            _copy_others(original, temporary)
        else:
            # The fingerprint holds a hash of the checkpoint.
            leave = shutil.ignore_patterns("variables", "fingerprint.pb")
            shutil.copytree(original, temporary, ignore=leave)
            _write_checkpoint(original / _CHECKPOINT, temporary / _CHECKPOINT, keys)
        if path.is_dir():  # a folder takes no other one's place
            path.rename(temporary.with_name(f"{path.name}.before"))


def _keys_of(file: TensorFlowFile, original: Path) -> Mapping[str, Array] | None:
    """New numbers by the checkpoint's names; None where a variable isn't found in it."""
    if not file.assigned:
        return {}
    prefix = str(original / _CHECKPOINT)
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    keys: dict[int, str] = {}
    if _OBJECTS in shapes:
        from tensorflow.core.protobuf import trackable_object_graph_pb2

        objects = trackable_object_graph_pb2.TrackableObjectGraph()
        objects.ParseFromString(reader.get_tensor(_OBJECTS))
        for number, item in tf.train.CheckpointView(prefix).match(file.owner).items():
            for attribute in objects.nodes[number].attributes:
                if attribute.name == _VALUE:
                    keys[id(item)] = attribute.checkpoint_key
    found = {}
    for name, array in file.assigned.items():
        variable = file.variable(name)
        key = keys.get(id(variable), str(getattr(variable, "name", "")).removesuffix(":0"))
        if shapes.get(key) != list(array.shape):
            return None
        found[key] = array
    return found


def _write_checkpoint(source: Path, path: Path, changed: Mapping[str, Array]) -> None:
    """The same checkpoint with other numbers."""
    path.parent.mkdir()
    reader = tf.train.load_checkpoint(str(source))
    names = sorted(reader.get_variable_to_shape_map())
    tensors = [tf.constant(changed[name] if name in changed else reader.get_tensor(name)) for name in names]
    tf.raw_ops.SaveV2(prefix=str(path), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)


def _save_anew(file: TensorFlowFile, path: Path) -> None:
    read = file.needed().captures
    for name in read:
        if file.variable(name) is None and file.pieces.captures[name].dtype in {tf.resource, tf.variant}:
            raise NotEditableError(
                f"{name} is a table or another resource, which can't be carried into a changed graph"
            )
    for name, array in file.assigned.items():
        variable = file.variable(name)
        if variable is not None:
            variable.assign(array)
    ours = _callable(file)
    loaded = file.owner.signatures
    own = next(name for name in loaded if loaded[name] is file.function)
    same = _description(file.function)
    module = _with_what_it_holds(file.owner)
    module.held = file.variables(read)
    signatures, kept = {}, False
    for name, function in loaded.items():
        alike = name == own or _description(function) == same
        signatures[name] = ours if alike else function
        kept = kept or not alike
    if kept:
        module.original = file.owner
    tf.saved_model.save(module, str(path), signatures=signatures)


def _with_what_it_holds(owner: Any) -> Any:
    """A module with the variables, assets and modules of another one under their names; functions are left out."""
    module = tf.Module()
    held = {
        name: child
        for name, child in owner._trackable_children().items()
        if name not in _OWN and not isinstance(child, tf.types.experimental.Callable)
    }
    for name, child in held.items():
        if not hasattr(module, name):  # what each module has (`variables`) can't be set
            setattr(module, name, child)
    module.others = {name: child for name, child in held.items() if getattr(module, name) is not child}
    return module


def _copy_others(original: Path, path: Path) -> None:
    """Copy the files that TensorFlow neither reads nor writes, and assets that nothing refers to any more."""
    for item in sorted(original.rglob("*")):
        place = item.relative_to(original)
        if item.is_file() and place.parts[0] not in _WRITTEN and not (path / place).exists():
            (path / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(item, path / place)


def _callable(file: TensorFlowFile) -> Any:
    """A function of the signature's inputs, by their names."""
    inner = file.pieces.function(file.feeds, list(file.results.values()))
    names = list(file.results)

    def call(*arguments: Any) -> dict[str, Any]:
        return dict(zip(names, inner(*arguments), strict=True))

    signature = [tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in file.signature.items()]
    return tf.function(call, input_signature=signature, autograph=False).get_concrete_function()


def _description(function: Any) -> Any:
    """What is equal for two functions that compute the same with the same operators."""
    pieces, results = pieces_of(function)
    inputs = function.structured_input_signature[1]
    return (
        [item.SerializeToString(deterministic=True) for item in pieces.operators.values()],
        dict(zip(natural_order(dict.fromkeys(function.structured_outputs)), results, strict=True)),
        {name: id(external) for name, external in pieces.captures.items()},
        {name: (str(inputs[name].shape), inputs[name].dtype) for name in inputs},
    )


def save_frozen(file: TensorFlowFile, path: Path) -> None:
    """Write a frozen graph: what the results need, which keep their names, and the inputs.

    Args:
        file: The changed function.
        path: Of the .pb.
    """
    operators = {item.name: item for item in file.needed().operators}
    operators |= {name: file.operators[name] for name in file.placeholders.values()}
    renamed: dict[str, str] = {}
    for name, place in file.results.items():
        if place != f"{name}:0" or any(place in data_inputs(item) for item in operators.values()):
            renamed[name] = file.free_name(f"{name}/inner")
    definition = file.function.graph.as_graph_def()  # with its functions, and the version
    del definition.node[:]

    def now(place: str) -> str:
        name, _, index = place.partition(":")
        return f"{renamed.get(name, name)}:{index}"

    for item in operators.values():
        copy = definition.node.add()
        copy.CopyFrom(item)
        copy.name = renamed.get(item.name, item.name)
        copy.input[:] = [now(name) for name in data_inputs(item)]
    for name in renamed:
        place = file.results[name]
        result = definition.node.add(name=name, op="Identity", input=[now(place)])
        result.attr["T"].type = file.specs[place][1].as_datatype_enum
    with whole_output(path) as temporary:
        temporary.write_bytes(definition.SerializeToString())
