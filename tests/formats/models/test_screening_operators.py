"""All operators that the libraries register: what reaches beyond a model is known as such."""

from __future__ import annotations

import re

import pytest


def test_tensorflows_operators_that_take_files_or_addresses_are_known() -> None:
    pytest.importorskip("tensorflow")
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.framework.op_def_pb2 import OpList
    from tensorflow.python.client import pywrap_tf_session

    from conrepair.formats.tensorflow.load.screening import _reaches

    operators = OpList.FromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    telling = re.compile(
        r"file_?(name|path|pattern)|(^|_)(path|dir|directory|address|url|socket|logdir|program)(_|$)"
    )
    reading = {"Restore", "RestoreV2", "RestoreSlice", "InitializeTableFromTextFile", "InitializeTableFromTextFileV2"}
    naming = {"CTCBeamSearchDecoder", "ShardedFilename"}  # paths through a lattice, and a name made of parts
    unknown = []
    for operator in operators.op:
        words = [item.name for item in (*operator.input_arg, *operator.attr)]
        node = GraphDef().node.add(op=operator.name)
        if operator.name not in reading | naming and any(map(telling.search, words)) and not _reaches(node):
            unknown.append((operator.name, words))
    assert unknown == []
    for name in ("WriteFile", "DatasetToTFRecord", "DumpTensor", "CalibrationStatisticsSaver", "DistributedSave",
                 "PyFunc", "EagerPyFunc", "RpcCall", "_Send", "SaveV2", "MergeV2Checkpoints"):  # fmt: skip
        assert _reaches(GraphDef().node.add(op=name)), name


ORDINARY = """
    VarHandleOp ReadVariableOp AssignVariableOp ResourceGather RandomUniform StatefulPartitionedCall While If
    HashTableV2 LookupTableFindV2 TensorListReserve TensorArrayV3 RestoreV2 Conv2D NoOp Placeholder
    NonMaxSuppressionV5 VariableV2 CudnnRNNV3 Assert PrintV2 MutableHashTableV2
"""
COMPUTING = """
    _export_tracepoint associative_scan auto_functionalized auto_functionalized_v2 autograd_function_apply cond
    custom_function_call dynamo_bypassing_wrapper flat_apply flex_attention flex_attention_backward foreach_map
    graphsafe_run_with_rng_state hints_wrapper invoke_quant invoke_quant_packed invoke_subgraph local_map_hop map_impl
    out_dtype print run_and_save_rng_state run_const_graph run_dtensor_rng_op run_with_rng_state scan strict_mode
    tag_activation_checkpoint trace_wrapped while_loop while_loop_stack_output with_effects wrap
    wrap_activation_checkpoint
    wrap_with_autocast wrap_with_set_grad_enabled control_deps
"""


@pytest.mark.parametrize("name", ORDINARY.split())
def test_what_networks_are_made_of_is_ordinary(name: str) -> None:
    pytest.importorskip("tensorflow")
    from tensorflow.core.framework.graph_pb2 import GraphDef

    from conrepair.formats.tensorflow.load.screening import _reaches

    assert not _reaches(GraphDef().node.add(op=name))


def test_pytorchs_operators_that_take_files_or_groups_are_known() -> None:
    torch = pytest.importorskip("torch")
    from conrepair.formats.torch.load.exported_screening import CALLED_BY_NAME, OF_NETWORK, reach_of

    unknown = []
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        words = {item.name for item in schema.arguments}
        if words & {"filename", "file_name", "group_name", "path", "url"} and name != "einsum":
            if not reach_of(f"torch.ops.{space}.{name}.default"):
                unknown.append(schema.name)
            if not (CALLED_BY_NAME.search(name) or OF_NETWORK.search(f"ops.{space}")):
                unknown.append(schema.name)
    assert unknown == []


def test_pytorchs_operators_of_higher_order_are_known() -> None:
    """Those that call something that was compiled elsewhere, or isn't in the file."""
    pytest.importorskip("torch")
    import torch._inductor.compile_fx
    import torch.export._trace  # noqa: F401 (both register some)
    from torch._ops import _higher_order_ops

    from conrepair.formats.torch.load.exported_screening import reach_of

    others = set(_higher_order_ops) - set(COMPUTING.split())
    assert [name for name in others if not reach_of(f"torch.ops.higher_order.{name}")] == []
