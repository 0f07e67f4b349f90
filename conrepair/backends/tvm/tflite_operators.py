"""What TVM's TFLite importer is helped with: shapes that a file computes though it also says them, and words."""

from __future__ import annotations

from typing import Any

__all__ = ["operator_converter"]


def operator_converter(tensors: dict[str, Any]) -> Any:
    """TVM's converter of operators, with a Reshape that takes a computed shape from its result.

    TensorFlow's converter writes a Flatten of an open batch as Shape, StridedSlice, Pack and Reshape, and the
    importer stops at a Reshape whose shape isn't constant. For the batch that the file's tensors have, the
    result's own shape says it. Where an operand must be constant and isn't, that's said.

    Args:
        tensors: Receives the expression of each tensor.
    """
    import tvm.error
    from tvm import relax
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    class Converter(OperatorConverter):
        def convert_op_to_relax(self) -> None:
            super().convert_op_to_relax()
            tensors.update(self.exp_tab.exprs)  # the last subgraph that ends is the model itself

        def get_tensor_value(self, tensor_wrapper: Any, is_sparse: bool = False) -> Any:
            if not tensor_wrapper.buffer.DataLength() and tensor_wrapper.tensor.ShapeLength():
                name = tensor_wrapper.tensor.Name().decode(errors="replace")
                where = (
                    "stored behind the flatbuffer, where the importer doesn't look"
                    if tensor_wrapper.buffer.Offset() > 1
                    else "computed while the model runs, and the importer takes constant ones alone"
                )
                raise tvm.error.OpNotImplemented(f"its operand {name} is {where}")
            return super().get_tensor_value(tensor_wrapper, is_sparse)

        def convert_reshape(self, op: Any) -> Any:
            data, *shape = self.get_input_tensors(op)
            if not (shape and self.has_expr(shape[0].tensor_idx)) or data.qnn_params:
                return super().convert_reshape(op)
            sizes = [int(size) for size in self.get_output_tensors(op)[0].tensor.ShapeAsNumpy()]
            return relax.op.reshape(self.get_expr(data.tensor_idx), sizes)

    return Converter
