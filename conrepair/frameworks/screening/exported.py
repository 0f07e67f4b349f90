"""Exported PyTorch programs (.pt2): PyTorch writes Python of what their JSON says, and runs that."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

from conrepair.frameworks.screening.admission import Finding, shown
from conrepair.frameworks.screening.expressions import is_guard, is_size

__all__ = ["findings_of_program"]

_NAMES = {"name", "as_name", "forward_arg_names"}  # become names of Python's
_FREE = {"stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node"}  # are only kept
_WRITTEN = {"as_string", "as_strings"}  # texts that operators are given: in Python's source with all escapes
_SPECS = {"in_spec", "out_spec"}  # JSON in JSON: how inputs are nested
_NO_TEXT = re.compile(r"['\"\\\r\n{}]")  # what would end a text in Python's source
_OPERATOR = re.compile(
    r"torch\.ops\.(?!load_library|import_module)\w+\.\w+(\.\w+)?|_operator\.\w+|math\.\w+|torch\.(_?sym_\w+)|torch\.sym_\w+|#\w+:[\w.]+"
    r"|torch\._functorch\.predispatch\._(add_batch_dim|remove_batch_dim|vmap_increment_nesting|vmap_decrement_nesting)"
)
_OF_FILES = re.compile(r"torch\.ops\.\w+\.(from_file|save|load|read_file|write_file)\b")
_CALLING = {"_operator.attrgetter", "_operator.itemgetter", "_operator.methodcaller", "_operator.call"}
_DEFAULTS = {"list", "dict", "tuple", "set", "int", "float", "str", "bool"}
_LARGEST = 1 << 30


def findings_of_program(archive: zipfile.ZipFile) -> Iterator[Finding]:
    """What no archive of `torch.export.save` has.

    Args:
        archive: A .pt2 file.
    """
    names = archive.namelist()
    # Which of two a reader takes is its own affair, and its reader takes no notice of capitals.
    for name, count in Counter(name.lower() for name in names).items():
        if count > 1:
            yield Finding(f"{shown(name)} is there {count} times")
    for info in archive.infolist():
        name = info.filename
        if "data/aotinductor" in name:
            yield Finding(f"compiled programs ({shown(name)})")
        elif re.search(r"data/constants/.*custom_obj", name):
            yield Finding(f"objects of classes ({shown(name)})", confinable=True)
        elif name.endswith(".json") or "models/" in name:
            yield from _of_json(archive, info)


def _of_json(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[Finding]:
    if info.file_size > _LARGEST:
        yield Finding(f"{shown(info.filename)} is larger than any program")
        return
    try:
        content = json.loads(archive.read(info).decode("utf-8"))
    except (ValueError, RecursionError):
        return  # PyTorch reads it by the same means, and comes no further
    yield from _of_value(content, "", _FREE)


def _of_value(value: Any, key: str, free: set[str]) -> Iterator[Finding]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if _NO_TEXT.search(name):
                yield Finding(f"the name {shown(name)!r}")
            yield from _of_value(inner, name, free | _WRITTEN if name == "nodes" else free)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_value(inner, key, free)
    elif isinstance(value, str) and key not in free:
        yield from _of_text(value, key)


def _of_text(text: str, key: str) -> Iterator[Finding]:
    if key == "expr_str":
        if not is_size(text):
            yield Finding(f"{shown(text)!r} as a size")
    elif key == "guards_code":
        if not is_guard(text):
            yield Finding(f"{shown(text)!r} as a condition on its inputs")
    elif key in _SPECS:
        yield from _of_spec(text)
    elif key in _NAMES:
        if text and not text.isidentifier():
            yield Finding(f"the name {shown(text)!r}")
    elif key == "target":
        if text and (not _OPERATOR.fullmatch(text) or text in _CALLING):
            yield Finding(f"{shown(text)!r} as an operator")
        elif _OF_FILES.match(text):
            yield Finding(f"the operator {text}, which opens files", confinable=True)
    elif _NO_TEXT.search(text):
        yield Finding(f"the text {shown(text)!r}")


def _of_spec(text: str) -> Iterator[Finding]:
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
                    yield Finding(f"the function {shown('.'.join(map(str, factory)))} among its inputs or outputs")
            for name in [str(kind), *_texts(told)]:
                if _NO_TEXT.search(name) or name == "__enum__":  # classes of enumerations are imported by name
                    yield Finding(f"the name {shown(name)!r}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        yield Finding(f"{shown(text)!r} as the form of its inputs")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
