"""TensorFlow: operators that reach files, the network or Python, where loading or calling a model may run them.

Loading runs more than what a signature needs: tables and variables are initialized, and a checkpoint restored, by
nodes that collections and the saver name. So all that's in a file counts, but for what saves it again.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow.core.framework import graph_pb2, variable_pb2
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2
from tensorflow.python.framework import op_def_registry

from conrepair.formats.models.admission import UnusualContent, shown
from conrepair.formats.models.model import Model
from conrepair.formats.tensorflow.load.screened_calls import GraphCalls
from conrepair.ground.runtime.files.archive import ArchiveError

_SAVED = "saved_model.pb"
_DATA = ("variables", "assets")  # folders that a SavedModel's numbers and vocabularies are in
_ASSETS = "saved_model_assets"  # a collection of them, in older files
_KEEPS = re.compile(
    r"_?VarHandles?Op|_XlaAotOnlyVarHandleOp|Variable(V2|Shape)?|TemporaryVariable|_?ReadVariables?Op|VarIsInitializedOp"
    r"|(Assign(Add|Sub)?Variable|DestroyResource|Mutex)\w*|ConsumeMutexLock|DisableCopyOnRead|GuaranteeConst|Empty|DeepCopy"
    r"|Resource(Scatter|Gather|Apply|SparseApply|StridedSliceAssign|CountUpTo|Accumulator|ConditionalAccumulator)\w*"
    r"|\w*(Random|Multinomial|TruncatedNormal)\w*|Stateful(Uniform|StandardNormal|TruncatedNormal)\w*|Rng\w+"
    r"|NonDeterministicInts|SampleDistortedBoundingBox(V2)?"
    r"|(LogUniform|ThreadUnsafeUnigram|LearnedUnigram|All|Uniform)CandidateSampler"
    r"|(Anonymous)?(Mutable)?(Dense)?HashTable\w*|LookupTable\w+|InitializeTable(FromTextFile)?(V2)?"
    r"|(TensorArray|Stack)\w*|(PaddingFIFO|FIFO|RandomShuffle|Priority)Queue(V2)?|Queue\w+|Barrier|Conditional\w+"
    r"|(Ordered)?Map(Stage|Unstage|Peek|Size|Clear|IncompleteSize)\w*|Stage(Size|Clear|Peek)?|Unstage"
    r"|_?(If|While)|Case|StatefulPartitionedCall|Assert|CheckNumerics(V2)?|Print(V2)?|Timestamp"
    r"|Restore(V2|Slice)?|CudnnRNN\w*|_(Arg|Retval|DeviceArg|DeviceRetval)|BoostedTrees\w+|GraphDefVersion"
    r"|(Range|Tensor|TensorSlice|SparseTensorSlice|Generator|List)Dataset(V2)?|ReduceDataset|DatasetToSingleElement"
    r"|(One)?Shot\w*Iterator|(Anonymous)?(Make|Delete)?Iterator\w*|DeviceIndex|IsResourceHandleRefCounting"
)  # that have a state which is TensorFlow's own, or only read what they're told to
_REACHES = re.compile(
    r"ReadFile|MatchingFiles|PyFunc\w*|EagerPyFunc|RegisterDataset\w*|\w*(Snapshot|Cache|Save|DataService)\w*Dataset\w*"
    r"|Debug(Nan|Numeric|Identity)\w*|\w*CustomCall\w*|CustomAggregator|Rpc\w*|_?(Host)?(Send|Recv)|Collective\w+"
)  # though TensorFlow doesn't register them as having a state


def seal(model: Model, place: Path) -> Iterator[UnusualContent]:
    """See `conrepair.formats.models.admission.admitted`."""
    path = Path(model.path)
    try:
        if path.is_dir():
            saved = saved_model_pb2.SavedModel.FromString((path / _SAVED).read_bytes())
            for content in saved.meta_graphs:
                GraphCalls(content.graph_def).check_size(path)
                yield from _of_nodes(_running(content))
                yield from _of_assets(content)
            _link(path, place)
            (place / _SAVED).write_bytes(saved.SerializeToString())
        else:
            graph = graph_pb2.GraphDef.FromString(path.read_bytes())
            GraphCalls(graph).check_size(path)
            yield from _of_nodes([*graph.node, *(node for item in graph.library.function for node in item.node_def)])
            place.write_bytes(graph.SerializeToString())
    except DecodeError as error:
        raise ArchiveError(f"it's damaged: {error}") from error


def _link(path: Path, place: Path) -> None:
    """A folder with the same numbers, and nothing else: what they are is in the other file."""
    place.mkdir()
    for name in _DATA:
        for folder, _, files in os.walk(path / name):
            new = place / Path(folder).relative_to(path)
            new.mkdir(parents=True)
            for file in files:
                old = Path(folder) / file
                if not old.is_file():
                    raise ArchiveError(f"{shown(old.relative_to(path))} in it is no file")
                try:
                    (new / file).symlink_to(old.resolve())
                except OSError:  # a system without links
                    shutil.copyfile(old, new / file)


def _of_nodes(nodes: Iterable[Any]) -> Iterator[UnusualContent]:
    for node in nodes:
        if _reaches(node):
            yield UnusualContent(f"the operator {shown(node.op)}, which reaches beyond the model", confinable=True)


def _reaches(node: Any) -> bool:
    if _REACHES.fullmatch(node.op):
        return True
    known = op_def_registry.get(node.op)
    if known is None or not known.is_stateful:  # a function of the file's, or one that computes
        return False
    if node.op == "PrintV2":
        return bool(node.attr["output_stream"].s.startswith(b"file:"))
    return _KEEPS.fullmatch(node.op) is None


def _running(content: Any) -> list[Any]:
    """What may run when a graph is loaded and called: all of it, but what only saving it needs."""
    calls = GraphCalls(content.graph_def)
    entries = [*calls.of_signatures(content.signature_def.values()), *_collected(content.collection_def)]
    saver = content.saver_def
    entries += [saver.restore_op_name, saver.filename_tensor_name]
    used = calls.reached(entries, content.object_graph_def.concrete_functions)
    saving = calls.reached([saver.save_tensor_name] if saver.save_tensor_name else []).keys() - used.keys()
    return [node for place, node in calls.nodes().items() if place not in saving]


def _collected(collections: Any) -> Iterator[str]:
    """Nodes that a graph's collections name; those of initializers are run, and variables are made by theirs."""
    for collection in collections.values():
        yield from collection.node_list.value
        for value in collection.bytes_list.value:
            try:
                variable = variable_pb2.VariableDef.FromString(value)
            except DecodeError:
                continue  # something else, which names nothing that's run
            yield from (variable.variable_name, variable.initializer_name, variable.initial_value_name)
            yield variable.snapshot_name


def _of_assets(content: Any) -> Iterator[UnusualContent]:
    """Files that a graph is given the paths of."""
    assets = list(content.asset_file_def)
    for value in content.collection_def[_ASSETS].any_list.value if _ASSETS in content.collection_def else ():
        asset = meta_graph_pb2.AssetFileDef()
        if value.Unpack(asset):
            assets.append(asset)
    for asset in assets:
        name = Path(asset.filename)
        if name.is_absolute() or ".." in name.parts:
            yield UnusualContent(f"the file {shown(name)}, which lies outside", confinable=True)
