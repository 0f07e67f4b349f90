"""Exported PyTorch programs (.pt2): PyTorch writes Python of what their JSON says, and runs that.

Of the members PyTorch is given those that `torch.export.save` writes; a compiled program isn't among them.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Generator, Iterator
from typing import Any

from conrepair.frameworks.screening.admission import UnusualContent, shown
from conrepair.frameworks.screening.expressions import is_guard, is_size
from conrepair.frameworks.screening.torch_operators import reach_of
from conrepair.runtime.archive import Archive, ArchiveError, check_unpacked, parsed_json

__all__ = ["findings_of_program"]

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
_NAMES = {"name", "as_name", "forward_arg_names"}  # become names of Python's
_FREE = {"stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node"}  # are only kept
_WRITTEN = {"as_string", "as_strings"}  # texts that operators are given: in Python's source with all escapes
_SPECS = {"in_spec", "out_spec"}  # JSON in JSON: how inputs are nested
_NO_TEXT = re.compile(r"['\"\\\r\n{}]")  # what would end a text in Python's source
_OPERATOR = re.compile(
    r"torch\.ops\.(?!load_library|import_module)\w+\.\w+(\.\w+)?|_operator\.\w+|math\.\w+|torch\.(_?sym_\w+)|torch\.sym_\w+|#\w+:[\w.]+"
    r"|torch\._functorch\.predispatch\._(add_batch_dim|remove_batch_dim|vmap_increment_nesting|vmap_decrement_nesting)"
)
_CALLING = {"_operator.attrgetter", "_operator.itemgetter", "_operator.methodcaller", "_operator.call"}
_DEFAULTS = {"list", "dict", "tuple", "set", "int", "float", "str", "bool"}


def findings_of_program(archive: Archive, root: str) -> Generator[UnusualContent, None, list[str]]:
    """What no archive of `torch.export.save` has.

    Args:
        archive: A .pt2 file.
        root: The folder in it that all its members are in, with a slash.

    Returns:
        The members that PyTorch is given.

    Raises:
        ArchiveError: if it can't be looked through.
    """
    kept = [name for name in archive.sizes if _MEMBER.fullmatch(name.removeprefix(root))]
    for name in archive.sizes.keys() - kept:
        if name.removeprefix(root).lower().startswith(_OWN):
            what = "compiled programs" if _COMPILED in name.lower() else "something that programs have no place for"
            yield UnusualContent(f"{what} ({shown(name)})")
    for name in kept:
        if re.search(r"data/constants/.*custom_obj", name):
            yield UnusualContent(f"objects of classes ({shown(name)})", confinable=True)
        if name.endswith(".json"):
            content = parsed_json(archive.read_text(name), f"{name} in it")
            yield from _of_value(content, "", _FREE)
            if name.endswith("_config.json"):
                _check_tensors(archive, content, name.rpartition("/")[0])
        elif name.endswith(".pt"):
            _check_pickled(archive, name)
    return kept


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


def _of_value(value: Any, key: str, free: set[str]) -> Iterator[UnusualContent]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if _NO_TEXT.search(name):
                yield UnusualContent(f"the name {shown(name)!r}")
            yield from _of_value(inner, name, free | _WRITTEN if name == "nodes" else free)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_value(inner, key, free)
    elif isinstance(value, str) and key not in free:
        yield from _of_text(value, key)


def _of_text(text: str, key: str) -> Iterator[UnusualContent]:
    if key == "expr_str":
        if not is_size(text):
            yield UnusualContent(f"{shown(text)!r} as a size")
    elif key == "guards_code":
        if not is_guard(text):
            yield UnusualContent(f"{shown(text)!r} as a condition on its inputs")
    elif key in _SPECS:
        yield from _of_spec(text)
    elif key in _NAMES:
        if text and not text.isidentifier():
            yield UnusualContent(f"the name {shown(text)!r}")
    elif key == "target":
        if text and (not _OPERATOR.fullmatch(text) or text in _CALLING):
            yield UnusualContent(f"{shown(text)!r} as an operator")
        elif reach := reach_of(text):
            yield UnusualContent(f"the operator {text}, which {reach}", confinable=True)
    elif _NO_TEXT.search(text):
        yield UnusualContent(f"the text {shown(text)!r}")


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
