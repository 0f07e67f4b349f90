"""ort-none: wrong numbers for Pow

y is 4052555153018976256 and should be 4052555153018976267 (ONNX's reference in float64 and torch-
eager)

Exit code 1: the fault is still there. 0: it's gone. 2: something else fails. Needs: onnxruntime 1.31.1.
"""

import base64
import os
import sys
import tempfile

import numpy

# <
#    ir_version: 10,
#    opset_import: ["" : 20],
#    producer_name: "own"
# >
# g (int64 x) => (int64 y) 
#    <int64 e =  {39}>
# {
#    y = Pow (x, e)
# }
MODEL = """
CAoSA293bjpAChAKAXgKAWUSAXkiA1BvdzoAEgFnKg8QB0IBZUoIJwAAAAAAAABaCwoBeBIGCgQIBxIAYgsKAXkSBgoECAcSAEIE
CgAQFA==
"""
INPUTS = {
    'x': numpy.array(3, 'int64').reshape(()),
}

os.chdir(tempfile.mkdtemp())
with open("model.onnx", "wb") as stream:
    stream.write(base64.b64decode(MODEL))
numpy.savez("inputs.npz", **INPUTS)
import numpy
import onnxruntime

options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
session = onnxruntime.InferenceSession(
    "model.onnx", options, providers=['CPUExecutionProvider'], disabled_optimizers=None
)
with numpy.load("inputs.npz") as inputs:
    found = session.run(None, dict(inputs))
numpy.savez("outputs.npz", **{item.name: array for item, array in zip(session.get_outputs(), found)})

with numpy.load("outputs.npz", allow_pickle=True) as outputs:
    given = {name: outputs[name] for name in outputs.files}
name, index, exact, allowed = 'y', (), 4052555153018976267, 0.0
there = given[name] if name in given else list(given.values())[0]
value = numpy.asarray(there[index]).item()
print(f"{name}[{index}] is {value!r}; right is {exact!r}, with a rounding error of at most {allowed!r}")
print("first values:", there.ravel()[:20].tolist())
same = value == exact or (value != value and exact != exact)  # NaN isn't equal to itself
sys.exit(int(not (same or (allowed is not None and abs(value - exact) <= allowed))))
