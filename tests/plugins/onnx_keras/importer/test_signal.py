import numpy as np
import onnx
import pytest
from onnx_cases import check, imported, layers_of, node_model, random, run_keras, together

from conrepair.ground.runtime.errors import ConversionError

REAL, COMPLEX = random(2, 9, 6, 1), random(2, 9, 6, 2)


@together("axis", [1, 2, -2, -3])
@together("attributes", [{}, {"onesided": 1}])
def test_fourier_of_real_numbers(attributes, axis):
    constants = {"axis": np.int64(axis)}
    check("DFT", {"x": REAL}, constants, inputs=["x", "", "axis"], opset=20, **attributes)
    check("DFT", {"x": REAL}, opset=17, axis=axis % 4, **attributes)


@together("inverse", [0, 1])
@together("length", [None, 4, 16])
def test_fourier_of_complex_numbers(inverse, length):
    constants = {} if length is None else {"n": np.int64(length)}
    check("DFT", {"x": COMPLEX}, constants, opset=20, inverse=inverse, symbolic={"x": ["n", 9, 6, 2]})


def test_there_and_back():
    network = imported(node_model("DFT", {"x": REAL}, opset=20, onesided=1))
    spectrum = run_keras(network, {"x": REAL})[0]
    np.testing.assert_allclose(spectrum[..., 0] + 1j * spectrum[..., 1], np.fft.rfft(REAL[..., 0]), atol=1e-5)
    back = imported(node_model("DFT", {"x": spectrum}, opset=20, onesided=1, inverse=1))
    np.testing.assert_allclose(run_keras(back, {"x": spectrum})[0], REAL, atol=1e-5)


def test_doubles():
    check("DFT", {"x": COMPLEX.astype("float64")}, opset=20, rtol=1e-9, atol=1e-9)


def test_long_transforms_are_refused():
    with pytest.raises(ConversionError, match="length 5000"):
        check("DFT", {"x": random(1, 5000, 1)}, opset=20)


@pytest.mark.parametrize("onesided", [0, 1])
def test_short_time_fourier(onesided):
    step, length, window = np.int64(4), np.int64(16), np.hanning(16).astype(np.float32)
    names = ["x", "step", "window", "length"]
    for x in (random(2, 60, 1), random(2, 61)[..., None]):
        check("STFT", {"x": x}, {"step": step, "window": window}, onesided=onesided)
        check(
            "STFT", {"x": x}, {"step": step, "length": length}, inputs=["x", "step", "", "length"], onesided=onesided
        )
        constants = {"step": step, "window": window, "length": length}
        network = check("STFT", {"x": x}, constants, inputs=names, onesided=onesided, symbolic={"x": ["n", "t", 1]})
    assert layers_of(network) == ["Conv1D", "Reshape"]


def test_short_time_fourier_of_complex_numbers():
    check("STFT", {"x": random(2, 60, 2)}, {"step": np.int64(5), "window": random(12)}, onesided=0)


@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_a_window_must_have_a_known_length(operator):
    with pytest.raises(ConversionError, match="must be constant"):
        check(operator, {"n": np.array(10)})


def test_filter_bank_must_be_constant():
    names = ["bins", "length", "rate", "low", "high"]
    with pytest.raises(ConversionError, match="must be constant"):
        check(
            "MelWeightMatrix",
            {"bins": np.int64(8)},
            {"length": np.int64(16), "rate": np.int64(8192), "low": np.float32(0), "high": np.float32(4096)},
            inputs=names,
        )


@pytest.mark.parametrize(("source", "target"), [("float32", "int32"), ("int32", "float32"), ("float64", "int64")])
def test_bits(source, target):
    x = random(3, 4, dtype=source, low=-1000, high=1000)
    code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target))
    network = imported(node_model("BitCast", {"x": x}, opset=26, to=code))
    np.testing.assert_array_equal(run_keras(network, {"x": x})[0], x.view(target))


@together("constant", [(), ("signal",)])
def test_short_time_transform_with_a_window_that_is_computed(constant):
    arrays = {"signal": random(2, 20, 1), "window": random(8, seed=1)}
    feeds = {name: array for name, array in arrays.items() if name not in constant}
    constants = {name: array for name, array in arrays.items() if name in constant} | {"step": np.int64(3)}
    check("STFT", feeds, constants, inputs=["signal", "step", "window"])
