import onnx
import pytest
from onnx_cases import check_model, imported, random

from conrepair.ground.runtime.errors import ConversionError

X = random(2, 6, 3)


def model(text, inputs="float[2, 6, 3] x", outputs="float y"):
    header = '<ir_version: 10, opset_import: ["" : 17]>\n'
    proto = onnx.parser.parse_model(f"{header}agraph ({inputs}) => ({outputs}) {{\n{text}\n}}")
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


SPLITS = {
    "by ones": "s = SplitToSequence <axis = 1> (x)",
    "without the axis": "s = SplitToSequence <axis = 1, keepdims = 0> (x)",
    "by fours": "n = Constant <value = int64 {4}> ()\n s = SplitToSequence <axis = 1> (x, n)",
    "by lengths": "n = Constant <value = int64[3] {1, 3, 2}> ()\n s = SplitToSequence <axis = -2> (x, n)",
}


@pytest.mark.parametrize("split", SPLITS)
def test_split_and_element(split):
    text = f"{SPLITS[split]}\n i = Constant <value = int64 {{-1}}> ()\n y = SequenceAt (s, i)"
    check_model(model(text), {"x": X})
    check_model(model(text, "float[n, 6, 3] x"), {"x": X})


def test_construct_insert_erase_and_join():
    text = """
        a = Neg (x)
        b = Abs (x)
        one = Constant <value = int64 {1}> ()
        first = Constant <value = int64 {-2}> ()
        empty = SequenceEmpty ()
        s0 = SequenceInsert (empty, x)
        s1 = SequenceInsert (s0, a)
        s2 = SequenceInsert (s1, b, one)
        s3 = SequenceErase (s2, first)
        t = SequenceConstruct (a, b, x)
        e = SequenceAt (t, one)
        s4 = SequenceInsert (s3, e)
        j = ConcatFromSequence <axis = 1> (s4)
        k = ConcatFromSequence <axis = 1> (t)
        n = SequenceLength (s4)
        f = CastLike (n, x)
        z = Add (j, k)
        y = Mul (z, f)
    """
    check_model(model(text), {"x": X})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_join_on_a_new_axis(axis):
    text = f"a = Neg (x)\n s = SequenceConstruct (x, a)\n y = ConcatFromSequence <axis = {axis}, new_axis = 1> (s)"
    check_model(model(text), {"x": X})


def test_sequences_of_constants():
    text = """
        c = Constant <value = float[4] {1, 2, 3, 4}> ()
        two = Constant <value = int64 {2}> ()
        zero = Constant <value = int64 {0}> ()
        s = SplitToSequence <axis = 0> (c, two)
        d = ConcatFromSequence <axis = 0, new_axis = 1> (s)
        e = ReduceSum (d)
        y = Add (x, e)
    """
    check_model(model(text), {"x": X})


def test_positions_are_checked():
    text = "s = SequenceConstruct (x)\n i = Constant <value = int64 {3}> ()\n y = SequenceAt (s, i)"
    with pytest.raises(ConversionError, match="position 3 lies outside a sequence of 1"):
        imported(model(text))


def test_sequences_are_not_outputs():
    proto = model("y = SequenceConstruct (x)")
    proto.graph.output[0].CopyFrom(
        onnx.helper.make_value_info(
            "y", onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(1, None))
        )
    )
    with pytest.raises(ConversionError, match="output y is a sequence"):
        imported(proto)


def test_map():
    text = """
        a = Neg (x)
        s = SequenceConstruct (x, a)
        t = SequenceMap (s, x) <body = twice (float[2, 6, 3] m, float[2, 6, 3] o) => (float[2, 6, 3] r) {
            q = Exp (m)
            r = Add (q, o)
        }>
        y = ConcatFromSequence <axis = 2> (t)
    """
    check_model(model(text), {"x": X})
