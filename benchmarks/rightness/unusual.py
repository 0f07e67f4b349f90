"""Right targets that few write: by the libraries themselves, in another layout, in other types, by other formulas.

    python -m benchmarks.rightness.unusual [--case NAME ...] [--list] [--seed N]

Small networks (a CNN, a block of a transformer, LSTM, GRU, a detector's head, normalizations) are exported, and the
file is optimized by ONNX Runtime at each level, simplified, exported anew for another opset, or converted, or the
network is written by other formulas. What counts is who is accused: a verdict that is not right by
`compare`, by `localize`, or by `localize` where faults that no sample shows count.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper, version_converter
from torch import nn

import conrepair
from benchmarks.common.unfit import UnfitError

Net = Callable[[], tuple[nn.Module, tuple[int, ...]]]
Way = Callable[[str, Path, Path], Path]

_OPSET = 17
_HALF_BLOCK = {"Conv", "MatMul", "Gemm"}


class _Cnn(nn.Module):
    def __init__(self, *, folded: bool = False, twice: bool = False) -> None:
        super().__init__()
        self.twice = twice
        self.stem = nn.Conv2d(3, 8, 3, 2, 1, bias=folded)
        self.norm = nn.Identity() if folded else nn.BatchNorm2d(8)
        self.deep = nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.wide, self.head = nn.Conv2d(8, 12, 1), nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.relu6(self.norm(self.stem(x)))
        if self.twice:  # a layer that's called twice, once for nothing: some writers merge what's equal
            x = torch.cat([x, nn.functional.hardswish(self.deep(x))[:, :0]], 1) + self.deep(x)
        else:
            x = x + nn.functional.hardswish(self.deep(x))
        return self.head(nn.functional.silu(self.wide(x)).mean((2, 3)))


class _Block(nn.Module):
    """A block of a transformer, written in one of several ways."""

    def __init__(self, way: str = "") -> None:
        super().__init__()
        self.way = way
        self.one, self.two = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._mixed(self._attended(x))

    def _norm(self, layer: nn.LayerNorm, x: torch.Tensor) -> torch.Tensor:
        if self.way != "norms":
            return layer(x)  # type: ignore[no-any-return]
        centred = x - x.mean(-1, keepdim=True)
        return (
            centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + layer.eps) * layer.weight + layer.bias
        )

    def _attended(self, x: torch.Tensor) -> torch.Tensor:
        read, (count, length, _) = self._norm(self.one, x), x.shape
        if self.way == "split":
            parts = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
            q, k, v = (
                nn.functional.linear(read, *part).view(count, length, 2, 8).transpose(1, 2)
                for part in zip(*parts, strict=True)
            )
        else:
            q, k, v = self.qkv(read).view(count, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        mask = torch.triu(torch.full((length, length), -1e4 if self.way == "mask" else float("-inf")), 1)
        if self.way == "einsum":
            weights = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) * 8**-0.5 + mask, -1)
            mixed = torch.einsum("bhqk,bhkd->bqhd", weights, v).reshape(count, length, 16)
        elif self.way == "fused":
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            mixed = mixed.transpose(1, 2).reshape(count, length, 16)
        elif self.way == "scaled":
            weights = torch.softmax((q / 8**0.25) @ (k / 8**0.25).transpose(-1, -2) + mask, -1)
            mixed = (weights @ v).transpose(1, 2).reshape(count, length, 16)
        else:
            weights = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5 + mask, -1)
            mixed = (weights @ v).transpose(1, 2).reshape(count, length, 16)
        return x + self.out(mixed)

    def _mixed(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(self._norm(self.two, x))
        if self.way == "gelu":
            y = 0.5 * y * (1 + torch.erf(y / 2**0.5))
        elif self.way == "normal":
            y = y * torch.special.ndtr(y)
        else:
            y = nn.functional.gelu(y)
        return x + self.down(y)


class _Recurrent(nn.Module):
    def __init__(self, kind: str, *, last: bool = False, both: bool = False) -> None:
        super().__init__()
        self.kind, self.last, self.both = kind, last, both
        self.layer = getattr(nn, kind)(6, 8, batch_first=True, bidirectional=both)
        self.head = nn.Linear(16 if both else 8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given, state = self.layer(x)
        state = state[0] if self.kind == "LSTM" else state
        ends = list(state)
        if self.last:
            ends = [given[:, -1, :8], given[:, 0, 8:]] if self.both else [given[:, -1]]
        return self.head(torch.cat(ends, -1))  # type: ignore[no-any-return]


class _Detector(nn.Module):
    def __init__(self, *, otherwise: bool = False) -> None:
        super().__init__()
        self.otherwise = otherwise
        self.body = nn.Conv2d(3, 8, 3, 2, 1)
        self.boxes, self.scores = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.leaky_relu(self.body(x), 0.1)
        if self.otherwise:
            boxes, scores = (part(x).permute(0, 2, 3, 1).flatten(1, 2) for part in (self.boxes, self.scores))
            return torch.cat([boxes.exp(), 1 / (1 + torch.exp(-scores))], 2).transpose(1, 2)
        boxes, scores = self.boxes(x).flatten(2), self.scores(x).flatten(2)
        return torch.cat([boxes.exp(), scores.sigmoid()], 1)


class _Norms(nn.Module):
    def __init__(self, *, otherwise: bool = False) -> None:
        super().__init__()
        self.otherwise = otherwise
        self.first, self.group = nn.Conv2d(3, 8, 3, 1, 1), nn.GroupNorm(4, 8)
        self.second, self.instance = nn.Conv2d(8, 8, 3, 2, 1), nn.InstanceNorm2d(8, affine=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if not self.otherwise:
            return self.instance(self.second(nn.functional.elu(self.group(x))))  # type: ignore[no-any-return]
        rows = x.reshape(x.shape[0], 4, -1)
        variance, mean = torch.var_mean(rows, -1, keepdim=True, correction=0)
        x = ((rows - mean) / torch.sqrt(variance + 1e-5)).reshape(x.shape)
        x = x * self.group.weight[:, None, None] + self.group.bias[:, None, None]
        x = self.second(torch.where(x > 0, x, torch.exp(x) - 1))
        mean = x.mean((2, 3), keepdim=True)
        variance = (x * x).mean((2, 3), keepdim=True) - mean * mean
        x = (x - mean) * (variance + 1e-5) ** -0.5
        return x * self.instance.weight[:, None, None] + self.instance.bias[:, None, None]


NETWORKS: dict[str, Net] = {
    "cnn": lambda: (_Cnn(), (3, 20, 24)),
    "twice": lambda: (_Cnn(twice=True), (3, 20, 24)),
    "block": lambda: (_Block(), (6, 16)),
    "lstm": lambda: (_Recurrent("LSTM"), (5, 6)),
    "gru": lambda: (_Recurrent("GRU", both=True), (5, 6)),
    "detector": lambda: (_Detector(), (3, 20, 24)),
    "norms": lambda: (_Norms(), (3, 12, 10)),
}


def _module(name: str, seed: int) -> tuple[nn.Module, tuple[int, ...]]:
    torch.manual_seed(seed)
    module, shape = NETWORKS[name]()
    for _ in range(4):
        module(torch.randn(8, *shape))  # BatchNorm's statistics
    return module.eval(), shape


def _exported(
    module: nn.Module, shape: tuple[int, ...], path: Path, *, dynamo: bool = False, opset: int = _OPSET
) -> Path:
    names = {"input_names": ["x"], "output_names": ["y"]}
    axes: dict[str, object] = {"dynamic_axes": {"x": {0: "N"}, "y": {0: "N"}}}
    if dynamo:
        axes = {"dynamic_shapes": {"x": {0: torch.export.Dim("N", min=1, max=64)}}}
    with torch.no_grad():
        torch.onnx.export(
            module, (torch.randn(2, *shape),), str(path), dynamo=dynamo, opset_version=opset, **names, **axes
        )  # type: ignore[arg-type]
    return path


def _by_runtime(level: str) -> Way:
    """Optimized and saved by ONNX Runtime, for this processor."""

    def way(_: str, source: Path, path: Path) -> Path:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath = str(path)
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
        return path

    return way


def _slimmed(_: str, source: Path, path: Path) -> Path:
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(source)), path)
    return path


def _simplified(_: str, source: Path, path: Path) -> Path:
    import onnxsim

    model, checked = onnxsim.simplify(onnx.load(source))
    if not checked:
        raise ValueError("onnxsim doesn't vouch for what it wrote")
    onnx.save(model, path)
    return path


def _of_opset(opset: int) -> Way:
    def way(_: str, source: Path, path: Path) -> Path:
        onnx.save(version_converter.convert_version(onnx.load(source), opset), path)
        return path

    return way


def _exported_anew(*, dynamo: bool, opset: int) -> Way:
    def way(name: str, source: Path, path: Path) -> Path:
        del source
        return _exported(*_module(name, _seed), path, dynamo=dynamo, opset=opset)

    return way


def _program(name: str, source: Path, path: Path) -> Path:
    """The exported file of PyTorch itself is the target, so that the ONNX file is the original."""
    del source
    module, shape = _module(name, _seed)
    axes = {"x": {0: torch.export.Dim("N", min=1, max=64)}}
    torch.export.save(
        torch.export.export(module, (torch.randn(2, *shape),), dynamic_shapes=axes), path.with_suffix(".pt2")
    )
    return path.with_suffix(".pt2")


def _channels_last(name: str, source: Path, path: Path) -> Path:
    del source
    module, shape = _module(name, _seed)

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.inner(x.permute(0, 3, 1, 2))
            return y.permute(0, 2, 3, 1) if y.ndim == len(shape) + 1 else y  # type: ignore[no-any-return]

    return _exported(Last().eval(), (*shape[1:], shape[0]), path)


def _half(_: str, source: Path, path: Path) -> Path:
    """Weights in float16, and Casts, so that all is computed in float32."""
    model = onnx.load(source)
    for tensor in list(model.graph.initializer):
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.ndim > 1:
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float16), f"{tensor.name}_half"))
            wide = helper.make_node("Cast", [tensor.name], [tensor.name.removesuffix("_half")], to=TensorProto.FLOAT)
            model.graph.node.insert(0, wide)
    onnx.save(model, path)
    return path


def _through_keras(*steps: str) -> Way:
    def way(_: str, source: Path, path: Path) -> Path:
        made = source
        for number, step in enumerate(steps):
            found = conrepair.convert(made, to=step, in_process=True)
            made = Path(shutil.copy(str(found.model), path.parent / f"step-{number}.{step}"))
        return made

    return way


def _written(make: Callable[[], nn.Module]) -> Way:
    """By other formulas, with the same weights."""

    def way(name: str, source: Path, path: Path) -> Path:
        del source
        module, shape = _module(name, _seed)
        other = make()
        other.load_state_dict(module.state_dict(), strict=False)
        return _exported(other.eval(), shape, path)

    return way


def _folded(name: str, source: Path, path: Path) -> Path:
    """BatchNorm in the weights in front of it."""
    del source
    module, shape = _module(name, _seed)
    other = _Cnn(folded=True)
    other.load_state_dict(module.state_dict(), strict=False)
    other.stem = torch.nn.utils.fusion.fuse_conv_bn_eval(module.stem.eval(), module.norm.eval())  # type: ignore[arg-type, union-attr]
    return _exported(other.eval(), shape, path)


_seed = 0
_EVERYWHERE: dict[str, Way] = {
    "runtime-basic": _by_runtime("BASIC"),
    "runtime-extended": _by_runtime("EXTENDED"),
    "runtime-all": _by_runtime("ALL"),
    "slimmed": _slimmed,
    "simplified": _simplified,
    "opset-21": _of_opset(21),
    "script-13": _exported_anew(dynamo=False, opset=13),
    "dynamo-18": _exported_anew(dynamo=True, opset=18),
    "program": _program,
    "half": _half,
}
_OF_ONE: dict[str, dict[str, Way]] = {
    "cnn": {"channels-last": _channels_last, "folded": _folded},
    "detector": {"channels-last": _channels_last, "otherwise": _written(lambda: _Detector(otherwise=True))},
    "norms": {"channels-last": _channels_last, "otherwise": _written(lambda: _Norms(otherwise=True))},
    "block": {
        way: _written(lambda way=way: _Block(way))  # type: ignore[misc]
        for way in ("norms", "split", "einsum", "fused", "scaled", "mask", "gelu", "normal")
    },
    "lstm": {"last": _written(lambda: _Recurrent("LSTM", last=True))},
    "gru": {"last": _written(lambda: _Recurrent("GRU", last=True, both=True))},
}
_CONVERTED = {"tflite": _through_keras("keras", "tflite"), "tflite-onnx": _through_keras("keras", "tflite", "onnx")}
CASES: dict[str, tuple[str, Way]] = {
    f"{name}/{label}": (name, way)
    for name in NETWORKS
    for label, way in {**_EVERYWHERE, **_OF_ONE.get(name, {}), **_CONVERTED}.items()
}


def _made(way: Way, network: str, source: Path) -> Path:
    try:
        return way(network, source, source.parent / "target.onnx")
    # Whatever a library raises, it doesn't write this network.
    except Exception as error:
        raise UnfitError("not written", f"{type(error).__name__}: {error}"[:150]) from error


def _verdicts(source: Path, target: Path) -> dict[str, conrepair.Verdict | str]:
    given = {"in_process": True, "samples": 16}
    return {
        "compare": conrepair.compare(source, target, **given),  # type: ignore[dict-item, arg-type]
        "localize": conrepair.localize(source, target, **given),  # type: ignore[dict-item, arg-type]
        "latent": conrepair.localize(source, target, latent=True, **given),  # type: ignore[dict-item, arg-type]
    }


def main() -> int:
    """Run and print; returns 1 where a right target is accused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", default=[], metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = {name: case for name, case in CASES.items() if not options.case or name in options.case}
    if options.list:
        print("\n".join(chosen))
        return 0
    global _seed
    _seed = options.seed
    warnings.simplefilter("ignore")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    accused = unfit = 0
    for name, (network, way) in chosen.items():
        with tempfile.TemporaryDirectory() as folder:
            source = _exported(*_module(network, _seed), Path(folder) / "source.onnx")
            try:
                target = _made(way, network, source)
            except UnfitError as error:
                unfit += 1
                print(f"{name}: {error}", flush=True)
                continue
            found = _verdicts(source, target)
        wrong = {verb: one for verb, one in found.items() if not one.verdict.is_right}  # type: ignore[union-attr]
        accused += bool(wrong)
        words = "; ".join(f"{verb} {one.verdict}: {one.reason}" for verb, one in wrong.items())  # type: ignore[union-attr]
        print(f"{name}: {words[:400] or 'right'}", flush=True)
    print(f"{len(chosen) - unfit} right targets, {accused} accused; {unfit} not written")
    return int(bool(accused))


if __name__ == "__main__":
    sys.exit(main())
