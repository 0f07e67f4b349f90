"""Exported PyTorch programs (.pt2): PyTorch writes Python of what their JSON says, and runs that.

Of the members PyTorch is given those that `torch.export.save` writes; a compiled program isn't among them. The JSON
is read into PyTorch's own schema, looked through field by field, and written anew from that: PyTorch is given nothing
that wasn't seen here.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import io
import json
import math
import re
from collections.abc import Generator, Iterator
from typing import Any

from conrepair.formats.models.admission import UnusualContent, shown
from conrepair.formats.torch.load.screened_expressions import is_guard, is_size
from conrepair.ground.runtime.files.archive import Archive, ArchiveError, check_unpacked, parsed_json

_FILES = r"from_file|read_file|write_file|save|load_tensor"
_NETWORK = r"\w*c10d\w*|rpc|distributed|symm_mem|_dtensor"
CALLED_BY_NAME = re.compile(rf"\b({_FILES})\b")
"""In TorchScript's code, where an operator may be called as a method of its first operand."""

OF_NETWORK = re.compile(rf"\bops\s*\.\s*({_NETWORK})\b")
"""In TorchScript's code, the library of operators that's called."""

_OF_FILES = re.compile(rf"torch\.ops\.\w+\.({_FILES}|load)\b")
_OF_PROGRAMS = re.compile(
    r"torch\.ops\.(higher_order\.(aoti_call_delegate|executorch_call_delegate|inductor_compiled_code|call_torchbind"
    r"|invoke_leaf_function|inline_asm_elementwise|triton_kernel_wrapper_\w+)|inductor\.|_test\.)"
)
_OPERATOR = re.compile(r"torch\.ops\.\w+\.\w+(\.\w+)?")
_OTHER = re.compile(
    r"_operator\.(eq|ne|le|ge|lt|gt|neg|pos|mul|add|sub|floordiv|mod|pow|truediv|and_|or_|lshift|rshift|getitem)"
    r"|math\.(trunc|ceil|floor)|torch\._?sym_\w+|#\w+:[\w.]+"
    r"|torch\._functorch\.predispatch\._(add_batch_dim|remove_batch_dim|vmap_(in|de)crement_nesting)"
)
"""Functions of sizes, and others that exported programs call and that are no operators."""

_BEYOND = (
    (_OF_FILES, "opens files"),
    (re.compile(rf"torch\.ops\.({_NETWORK})\."), "uses the network"),
    (_OF_PROGRAMS, "runs compiled code"),
)


def is_operator(target: str) -> bool:
    """Whether an exported program's target is an operator, and not something else that PyTorch finds by that name.

    Args:
        target: As an exported program names it ("torch.ops.aten.relu.default"). PyTorch says of one that it doesn't
            find, as of a library that isn't imported, that it's missing.
    """
    if not _OPERATOR.fullmatch(target):
        return _OTHER.fullmatch(target) is not None
    torch: Any = importlib.import_module("torch")
    try:
        found = functools.reduce(getattr, target.split(".")[1:], torch)
    except AttributeError:
        return True
    return isinstance(found, torch._ops.OpOverload | torch._ops.HigherOrderOperator)


def reach_of(target: str) -> str:
    """What an operator does beyond computing; "" where it computes.

    Args:
        target: As an exported program names it ("torch.ops.aten.relu.default").
    """
    return next((words for pattern, words in _BEYOND if pattern.match(target)), "")


_MEMBER = re.compile(
    r"models/[\w.\-]+\.json|data/(weights|constants|sample_inputs)/[\w.\-]+|extra/.+|archive_(format|version)|byteorder"
    r"|\.data/\w+|version|\.format_version|\.storage_alignment"
    # before PyTorch 2.8
    r"|serialized_exported_program\.json|serialized_(state_dict|constants|example_inputs)\.pt|extra_files/.+"
)
_COMPILED = "data/aotinductor/"
_OWN = ("models/", "data/")  # folders in which PyTorch takes whatever is there
_WIDTHS = {
    1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2, 28: 2, 29: 1, 30: 1, 31: 1,
    32: 1, 33: 1, 34: 4, 35: 8,
}  # fmt: skip
"""Bytes of an element, by the number of its type in PyTorch's schema."""
_WIDEST = 16
_OPERATORS = {"target", "as_operator"}  # are looked up in PyTorch, and called
_NAMES = {"name", "as_name", "forward_arg_names"}  # become names of Python's
_SIZES = {"expr_str", "range_constraints"}  # are evaluated
_SPECS = {"in_spec", "out_spec"}  # JSON in JSON: how inputs are nested
_WRITTEN = {"as_string", "as_strings"}  # texts that operators are given: in Python's source with all escapes
_PLAIN = _WRITTEN | {
    "as_string_to_argument", "buffer_name", "class_fqn", "config", "custom_obj_name", "custom_obj_values",
    "field_names", "fqn", "opset_version", "parameter_name", "path_name", "sym_bool_values", "sym_float_values",
    "sym_int_values", "tensor_constant_name", "tensor_values", "torch_version", "treespec_namedtuple_fields", "type",
    "user_input_name", "verifiers",
}  # fmt: skip
"""What else is a text, or has texts for keys, in the schema; a test looks through all of PyTorch's."""

_KEPT_NOTES = {"stack_trace", "nn_module_stack", "torch_fn", "custom", "from_node"}
"""What's noted at nodes and only kept there; the functions that they come from are looked up, and are left out."""

_NO_TEXT = re.compile(r"['\"\\\r\n{}]")  # what would end a text in Python's source
_DEFAULTS = {"list", "dict", "tuple", "set", "int", "float", "str", "bool"}


def findings_of_program(archive: Archive, root: str) -> Generator[UnusualContent, None, dict[str, bytes | None]]:
    """Members and entries that a genuine archive of `torch.export.save` never holds.

    Args:
        archive: A .pt2 file.
        root: The folder in it that all its members are in, with a slash.

    Returns:
        The members that PyTorch is given, those with a content that are written anew.

    Raises:
        ArchiveError: if it can't be looked through.
    """
    kept: dict[str, bytes | None] = {
        name: None for name in archive.sizes if _MEMBER.fullmatch(name.removeprefix(root))
    }
    for name in archive.sizes.keys() - kept:
        if name.removeprefix(root).lower().startswith(_OWN):
            what = "compiled programs" if _COMPILED in name.lower() else "something that programs have no place for"
            yield UnusualContent(f"{what} ({shown(name)})")
    for name in kept:
        inner = name.removeprefix(root)
        if re.search(r"data/constants/.*custom_obj", name):
            yield UnusualContent(f"objects of classes ({shown(name)})", confinable=True)
        if inner.endswith(".json") and not inner.startswith("extra"):
            content = parsed_json(archive.read_text(name), f"{name} in it")
            weights = inner.startswith("data/")
            kept[name] = yield from _rewritten(content, "PayloadConfig" if weights else "ExportedProgram", name)
            if weights:
                _check_tensors(archive, content, name.rpartition("/")[0])
        elif name.endswith(".pt"):
            _check_pickled(archive, name)
    return kept


def _rewritten(content: Any, schema: str, where: str) -> Generator[UnusualContent, None, bytes]:
    """The JSON of what PyTorch reads in a JSON, of which all has been looked through."""
    serde: Any = importlib.import_module("torch._export.serde.serialize")
    try:
        parsed = serde._dict_to_dataclass(getattr(serde.schema, schema), content)
    except (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ArchiveError(f"{where} in it isn't what PyTorch writes: {type(error).__name__} {error}") from error
    yield from _of_value(parsed, "")
    written: bytes = serde._to_json_bytes(parsed)
    return written


def _check_tensors(archive: Archive, content: Any, folder: str) -> None:
    """Refuse weights that would take more memory than their file justifies: where there are none, zeros are made."""
    sizes: dict[str, int] = {}
    try:
        for payload in content["config"].values():
            name, meta = str(payload["path_name"]), payload["tensor_meta"]
            if payload["use_pickle"]:
                _check_pickled(archive, f"{folder}/{name}")
            elif meta is not None:
                lengths = [int(item["as_int"]) for item in meta["sizes"]]
                width = _WIDTHS.get(meta["dtype"], _WIDEST)
                sizes[name] = max(sizes.get(name, 0), math.prod(lengths) * width)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArchiveError(f"{folder} in it isn't described as PyTorch does: {error!r}") from error
    check_unpacked(sum(sizes.values()), sum(archive.sizes.values()), "its weights would be of")


def _check_pickled(archive: Archive, name: str) -> None:
    """Refuse an archive within the archive that unpacks to more than it may; PyTorch restricts its pickle itself."""
    if name in archive.sizes and (content := archive.read(name)).startswith(b"PK"):
        Archive(io.BytesIO(content))


def _of_value(value: Any, field: str, *, in_nodes: bool = False) -> Iterator[UnusualContent]:
    """What's unusual in a value of PyTorch's schema; notes that aren't kept are taken out of it."""
    if dataclasses.is_dataclass(value):
        for name, inner in vars(value).items():
            if name == "metadata":
                kept = {key: text for key, text in inner.items() if key in _KEPT_NOTES}
                inner.clear()
                inner.update(kept)
            elif not name.startswith("_"):  # which of a union's fields it is
                yield from _of_value(inner, name, in_nodes=in_nodes or name == "nodes")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _of_text(key, field)
            yield from _of_value(inner, field, in_nodes=in_nodes)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_value(inner, field, in_nodes=in_nodes)
    elif isinstance(value, str) and not (in_nodes and field in _WRITTEN):
        yield from _of_text(value, field)


def _of_text(text: str, field: str) -> Iterator[UnusualContent]:
    if field in _SIZES:
        if not is_size(text):
            yield UnusualContent(f"{shown(text)!r} as a size")
    elif field == "guards_code":
        if not is_guard(text):
            yield UnusualContent(f"{shown(text)!r} as a condition on its inputs")
    elif field in _SPECS:
        yield from _of_spec(text)
    elif field in _NAMES:
        if text and not text.isidentifier():
            yield UnusualContent(f"the name {shown(text)!r}")
    elif field in _OPERATORS:
        if text and not is_operator(text):
            yield UnusualContent(f"{shown(text)!r} as an operator")
        elif reach := reach_of(text):
            yield UnusualContent(f"the operator {text}, which {reach}", confinable=True)
    elif field not in _PLAIN or _NO_TEXT.search(text):
        yield UnusualContent(f"the text {shown(text)!r} as {field}")


def _of_spec(text: str) -> Iterator[UnusualContent]:
    """How inputs or outputs are nested; classes of others are imported by what it says."""
    if not text:
        return
    try:
        _, spec = json.loads(text)
        pending = [spec]
        while pending:
            inner = pending.pop()
            kind, context = inner["type"], inner["context"]
            pending += inner["children_spec"]
            told = json.loads(context) if isinstance(context, str) else context
            if isinstance(told, dict) and "default_factory_module" in told:
                factory = told["default_factory_module"], told.get("default_factory_name")
                if factory[0] != "builtins" or factory[1] not in _DEFAULTS:
                    yield UnusualContent(
                        f"the function {shown('.'.join(map(str, factory)))} among its inputs or outputs"
                    )
            for name in [str(kind), *_texts(told)]:
                if _NO_TEXT.search(name) or name == "__enum__":  # classes of enumerations are imported by name
                    yield UnusualContent(f"the name {shown(name)!r}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        yield UnusualContent(f"{shown(text)!r} as the form of its inputs")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
