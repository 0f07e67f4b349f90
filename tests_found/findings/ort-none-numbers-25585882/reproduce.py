"""ort-none: wrong numbers for Pow

y is 4052555153018976256 and should be 4052555153018976267 (ONNX's reference in float64 and torch-
eager)

Prints what it shows; ends with 1 where it's still so, with 0 where it isn't. Needs: onnxruntime 1.31.1.
"""

import os
import sys
import tempfile

import numpy

MODEL = """
<
   ir_version: 10,
   opset_import: ["" : 20],
   producer_name: "own"
>
g (int64 x) => (int64 y) 
   <int64 e =  {39}>
{
   y = Pow (x, e)
}
"""
INPUTS = {
    'x': numpy.array(3, 'int64').reshape(()),
}

os.chdir(tempfile.mkdtemp())
import onnx

onnx.save(onnx.parser.parse_model(MODEL), "model.onnx")
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

with numpy.load("outputs.npz") as outputs:
    given = {name: outputs[name] for name in outputs.files}
name, index, exact, allowed = 'y', (), 4052555153018976267, 0.0
there = given[name] if name in given else list(given.values())[0]
value = there[index].item()
print(f"{name}[{index}] is {value!r}; the exact value is {exact!r}, give or take {allowed!r}")
print("all:", there.ravel()[:20].tolist())
sys.exit(int(not abs(value - exact) <= allowed))
