"""TensorFlow: operators that reach files, the network or Python, where loading or calling a model may run them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import saved_model_pb2

from conrepair.frameworks.model import Model
from conrepair.frameworks.screening.admission import Finding, shown

__all__ = ["called_nodes", "findings"]

_REACHING = re.compile(
    r"(Read|Write)File|MatchingFiles|.*PyFunc.*|Save(V2|Slices)?|MergeV2Checkpoints|.*Summary.*|(Print|Debug).*"
    r"|.*(TFRecord|TextLine|FixedLengthRecord|Snapshot|Save|DataService|Cache|Sql|CSV|LMDB).*Dataset.*"
    r"|.*(RecordReader|LineReader|WholeFileReader|LMDBReader|FileReader).*|RegisterDataset.*|Rpc.*|.*Grpc.*"
    r"|_?(Host)?(Send|Recv)|Collective.*|NcclAll.*|ConfigureDistributedTPU|.*LoadLibrary.*|XlaLaunch.*|.*CustomCall.*"
    r"|Audio.*File|.*Checkpoint.*Delete.*|DeleteFile|RenameFile|CopyFile"
)
_PRINTED = ("PrintV2",)  # to a file only where its setting says so
_INITIALIZERS = ("saved_model_main_op", "legacy_init_op")


def findings(model: Model) -> Iterator[Finding]:
    """See `conrepair.frameworks.screening.admission.admit`."""
    path = Path(model.path)
    try:
        if path.is_dir():
            saved = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
            for content in saved.meta_graphs:
                yield from _of_nodes(_running(content))
        else:
            graph = graph_pb2.GraphDef.FromString(path.read_bytes())
            inner = [node for function in graph.library.function for node in function.node_def]
            yield from _of_nodes([*graph.node, *inner])
    except (DecodeError, OSError):
        return  # it's damaged, as TensorFlow says


def _of_nodes(nodes: Iterable[Any]) -> Iterator[Finding]:
    for node in nodes:
        is_told = node.op in _PRINTED and not node.attr["output_stream"].s.startswith(b"file:")
        if _REACHING.fullmatch(node.op) and not is_told:
            yield Finding(f"the operator {shown(node.op)}, which reaches beyond the model", confinable=True)


def called_nodes(
    content: Any, signatures: Iterable[Any], functions: Iterable[str] = (), more: Sequence[str] = ()
) -> list[Any]:
    """Nodes that signatures of a SavedModel need, with those of the functions that they call.

    Args:
        content: One of its graphs.
        signatures: Of it.
        functions: That are called besides.
        more: Nodes that are run besides.
    """
    graph = content.graph_def
    nodes = {node.name: node for node in graph.node}
    library = {function.signature.name: function for function in graph.library.function}
    wanted = [tensor.name for item in signatures for side in (item.inputs, item.outputs) for tensor in side.values()]
    found = [nodes[name] for name in _reached([*wanted, *more], nodes)]
    pending = [*functions, *_callees(found)]
    while pending:
        function = library.pop(pending.pop(), None)
        if function is not None:
            found += function.node_def
            pending += _callees(function.node_def)
    return found


def _running(content: Any) -> list[Any]:
    """What may run when a SavedModel is loaded and called: all but what saves it, which nobody asks for."""
    collections = [content.collection_def[key] for key in _INITIALIZERS if key in content.collection_def]
    more = [name for collection in collections for name in collection.node_list.value]
    return called_nodes(content, content.signature_def.values(), content.object_graph_def.concrete_functions, more)


def _reached(wanted: Iterable[str], nodes: dict[str, Any]) -> set[str]:
    """Names of the nodes that some tensors need."""
    found: set[str] = set()
    pending = list(wanted)
    while pending:
        name = pending.pop().lstrip("^").partition(":")[0]
        if name in nodes and name not in found:
            found.add(name)
            pending += nodes[name].input
    return found


def _callees(nodes: Iterable[Any]) -> Iterator[str]:
    """Functions that some nodes call, in whatever attribute they name them."""
    for node in nodes:
        yield node.op
        for value in node.attr.values():
            yield value.func.name
            yield from (function.name for function in value.list.func)
