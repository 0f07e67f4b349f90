"""Operators of signals: spectra and window functions."""

from __future__ import annotations

from conrepair_lab.generate.settings.ports import MAX_RANK
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Dims, Either, Size
from conrepair_lab.generate.specifications.specification import operator


@operator()
def dft(s: Setting) -> None:
    inverse, onesided = s.flag("inverse"), s.flag("onesided")
    parts = Size(1, 2) if not onesided else 2 if inverse else 1
    ranks = [Dims((*[Size(0)] * (rank - 1), parts)) for rank in range(2, MAX_RANK + 1)]
    shape = list(s.input("input", Either(ranks)).shape)
    axis = len(shape) - 2 if s.opset >= 20 else 1
    if s.has("axis"):
        axis = s.axis("axis", len(shape))
    s.require(axis < len(shape) - 1, "the axis of real and imaginary parts")
    s.require(shape[axis] >= 1, "a spectrum of nothing")
    length = 2 * (shape[axis] - 1) if onesided and inverse else shape[axis]
    if s.has("dft_length"):
        length = s.size_said("dft_length")
    s.require(length >= 1, "a spectrum of nothing")
    shape[axis] = length // 2 + 1 if onesided and not inverse else length
    shape[-1] = 1 if onesided and inverse else 2
    s.output(shape)


@operator()
def stft(s: Setting) -> None:
    onesided = s.flag("onesided")
    batch, length, _ = s.input("signal", [Size(0), Size(), 1 if onesided else Size(1, 2)]).shape
    step = s.size_said("frame_step")
    windowed = s.has("window")
    s.require(windowed or s.has("frame_length"), "frames of no length")
    if windowed:
        frame = s.input("window", [Size(1, length)]).shape[0]
        if s.has("frame_length"):
            s.size_said("frame_length", frame, frame)
    else:
        frame = s.size_said("frame_length", 1, length)
    s.output([batch, (length - frame) // step + 1, frame // 2 + 1 if onesided else frame, 2])


@operator("BlackmanWindow", "HammingWindow", "HannWindow", still=True)
def window(s: Setting) -> None:
    size = s.size_said("size", 1)
    if s.has("periodic"):
        periodic = s.flag("periodic")
        s.require((size >= 2) | periodic, "ONNX Runtime divides by zero")
    s.output([size], s.element_type("output_datatype"))


@operator(still=True)
def mel_weight_matrix(s: Setting) -> None:
    bins = s.size_said("num_mel_bins")
    length = s.size_said("dft_length")
    rate = s.integer("sample_rate", 1, 96000)
    low = s.real("lower_edge_hertz", 0.0, rate / 2, usual=(0.0,))
    high = s.real("upper_edge_hertz", low, rate / 2, usual=(rate / 2,))
    s.require(low < high, "a range of no frequencies")
    over, under = high.as_integer_ratio()
    s.require(
        (length + 1) * over < (length // 2 + 1) * under * rate, "ONNX Runtime needs frequencies of the spectrum"
    )
    s.output([length // 2 + 1, bins], s.element_type("output_datatype"))
