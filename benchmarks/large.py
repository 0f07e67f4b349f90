"""What commands cost on a large decoder: processor, time, memory and bytes written, beside ONNX Runtime alone.

    python -m benchmarks.large [--layers 12] [--width 768] [--vocabulary 29000] [--dtype float32] [--inside]
        [--verbs inspect compare localize repair] [--folder FOLDER] [--json]

A decoder of seeded random numbers (token and position embeddings; per layer normalization, causal attention and a
gated feed-forward network; a head), whose weights lie beside the .onnx file, or with --inside in it; and a copy of
it in a file of its own with one matrix wrong. In 4 bits the matrices are MatMulNBits. Each command is run once,
cold processes and warm file caches. Its memory is the largest sum over its processes that was seen, every 50 ms:
"resident" counts mapped files too, as often as they're mapped, "own" what no file stands behind. "ONNX Runtime"
loads either file as it's written and runs the same number of inputs through it, one after the other in one process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

SOURCE, WRONG = "source.onnx", "wrong.onnx"
VERBS = ("inspect", "compare", "localize", "repair")
_TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "4 bits": TensorProto.FLOAT}
_DONE = (0, 1)  # exit codes of verbs that did what was asked for
_BLOCK, _HEAD = 32, 64  # numbers that share a scale in 4 bits; width of a head of attention
_ALIGNMENT, _ROWS = 4096, 1 << 24  # bytes that weights begin at; numbers that are drawn at a time
_FAULT = 1.5  # what the wrong matrix is multiplied by
_EVERY = 0.05  # seconds
_BATCH = 4

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Decoder:
    """Which network is made.

    Attributes:
        layers: How many blocks.
        width: Of what they hand on.
        vocabulary: How many tokens.
        dtype: "float32", "float16", or "4 bits".
        tokens: That an input has.
        seed: Of the weights.
        inside: Whether the weights are in the .onnx file.
    """

    layers: int = 12
    width: int = 768
    vocabulary: int = 29000
    dtype: str = "float32"
    tokens: int = 16
    seed: int = 0
    inside: bool = False

    @property
    def parameters(self) -> int:
        """Numbers in matrices."""
        return self.layers * 16 * self.width**2 + (2 * self.vocabulary + self.tokens) * self.width


@dataclass
class _Writing:
    """A decoder that is written: its graph, and its weights one behind the other."""

    decoder: Decoder
    path: Path
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[onnx.TensorProto] = field(default_factory=list)
    size: int = 0

    def node(self, operator: str, name: str, inputs: Sequence[str], domain: str = "", **attributes: Any) -> str:
        """Add a node; returns what it gives."""
        self.nodes.append(
            helper.make_node(operator, inputs, [name], name=f"{name}/node", domain=domain, **attributes)
        )
        return name

    def small(self, name: str, array: Array) -> str:
        """Add a constant that is in the file."""
        self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def real(self, name: str, *dims: int, scale: float = 1.0, offset: float = 0.0) -> str:
        """Add random numbers in the decoder's floating-point type."""
        kind = _TYPES[self.decoder.dtype]
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        rows = (scale * rows + offset for rows in self._drawn(name, math.prod(dims)))
        return self._outside(name, kind, dims, (item.astype(dtype) for item in rows))

    def product(self, name: str, value: str, rows: int, columns: int) -> str:
        """Multiply by a random matrix."""
        weight, scale = f"{name}.weight", 1 / math.sqrt(rows)
        if self.decoder.dtype != "4 bits":
            return self.node("MatMul", name, [value, self.real(weight, rows, columns, scale=scale)])
        blocks = rows // _BLOCK
        packed = ((np.clip(8 + 3 * item, 0, 15).astype(np.uint8)) for item in self._drawn(weight, rows * columns))
        codes = (item[0::2] | item[1::2] << 4 for item in packed)
        dims = (columns, blocks, _BLOCK // 2)
        inputs = [value, self._outside(weight, TensorProto.UINT8, dims, codes)]
        drawn = (0.3 * scale * (1 + 0.1 * np.abs(item)) for item in self._drawn(f"{name}.scales", columns * blocks))
        scales = (item.astype(np.float32) for item in drawn)
        inputs.append(self._outside(f"{name}.scales", TensorProto.FLOAT, (columns * blocks,), scales))
        sizes = {"K": rows, "N": columns, "bits": 4, "block_size": _BLOCK}
        return self.node("MatMulNBits", name, inputs, domain="com.microsoft", **sizes)

    def _drawn(self, name: str, count: int) -> Iterator[Array]:
        seed = [self.decoder.seed, *name.encode()]
        draw = np.random.Generator(np.random.SFC64(seed))
        for begin in range(0, count, _ROWS):
            yield draw.standard_normal(min(_ROWS, count - begin), np.float32)

    def _outside(self, name: str, kind: int, dims: Sequence[int], blocks: Iterator[Array]) -> str:
        place = -(-self.size // _ALIGNMENT) * _ALIGNMENT
        tensor = TensorProto(name=name, data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
        with self.path.with_suffix(".data").open("r+b" if self.size else "wb") as file:
            file.seek(place)
            self.size = place + sum(file.write(block.tobytes()) for block in blocks)
        for key, value in (
            ("location", file.name.rpartition("/")[2]),
            ("offset", place),
            ("length", self.size - place),
        ):
            tensor.external_data.add(key=key, value=str(value))
        self.tensors.append(tensor)
        return name


def write_wrong(source: Path, path: Path, weight: str) -> None:
    """Write a copy of a decoder, of which one weight is too large.

    Args:
        source: Of the right one, with its weights beside it.
        path: Of the copy.
        weight: Its name.
    """
    model = onnx.load(source, load_external_data=False)
    data = path.with_suffix(".data")
    shutil.copyfile(source.with_suffix(".data"), data)
    for tensor in model.graph.initializer:
        said = {entry.key: entry for entry in tensor.external_data}
        if said:
            said["location"].value = data.name
        if tensor.name == weight:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
            with data.open("r+b") as file:
                file.seek(int(said["offset"].value))
                numbers = np.frombuffer(file.read(int(said["length"].value)), dtype)
                file.seek(int(said["offset"].value))
                file.write((_FAULT * numbers).astype(dtype).tobytes())
    onnx.save(model, path)


def put_inside(path: Path) -> None:
    """Put a decoder's weights into its file."""
    onnx.save(onnx.load(path), path)
    path.with_suffix(".data").unlink()


def write_decoder(decoder: Decoder, path: Path) -> None:
    """Write a decoder.

    Args:
        decoder: Which.
        path: Of the .onnx file; weights go beside it.
    """
    out = _Writing(decoder, path)
    width, tokens, kind = decoder.width, decoder.tokens, _TYPES[decoder.dtype]
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    out.small("mask", np.triu(np.full((tokens, tokens), -1e4, dtype), 1))
    out.small("root", np.array(1 / math.sqrt(_HEAD), dtype))
    out.small("heads", np.array([0, 0, width // _HEAD, _HEAD], np.int64))
    out.small("joined", np.array([0, 0, width], np.int64))
    token = out.node("Gather", "tokens", [out.real("tokens.weight", decoder.vocabulary, width), "ids"])
    state = out.node("Add", "embedded", [token, out.real("positions.weight", tokens, width, scale=0.1)])
    for layer in range(decoder.layers):
        state = _block(out, f"layer{layer}", state)
    logits = out.product("logits", _normal(out, "last", state), width, decoder.vocabulary)
    graph = helper.make_graph(
        out.nodes,
        "decoder",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", tokens])],
        [helper.make_tensor_value_info(logits, kind, ["batch", tokens, decoder.vocabulary])],
        out.tensors,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.save(model, path)


def _normal(out: _Writing, name: str, state: str) -> str:
    weights = [out.real(f"{name}.scale", out.decoder.width, scale=0.1, offset=1.0)]
    weights.append(out.real(f"{name}.bias", out.decoder.width, scale=0.1))
    return out.node("LayerNormalization", name, [state, *weights], axis=-1, epsilon=1e-5)


def _block(out: _Writing, name: str, state: str) -> str:
    width = out.decoder.width
    read = _normal(out, f"{name}.norm1", state)
    turned = {}
    for part, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3))):
        made = out.product(f"{name}.{part}", read, width, width)
        split = out.node("Reshape", f"{name}.{part}.split", [made, "heads"])
        turned[part] = out.node("Transpose", f"{name}.{part}.heads", [split], perm=order)
    scores = out.node("MatMul", f"{name}.scores", [turned["query"], turned["key"]])
    scores = out.node("Mul", f"{name}.scaled", [scores, "root"])
    scores = out.node("Add", f"{name}.masked", [scores, "mask"])
    scores = out.node("Softmax", f"{name}.attention", [scores], axis=-1)
    mixed = out.node("MatMul", f"{name}.mixed", [scores, turned["value"]])
    mixed = out.node("Transpose", f"{name}.turned", [mixed], perm=(0, 2, 1, 3))
    mixed = out.node("Reshape", f"{name}.joined", [mixed, "joined"])
    state = out.node("Add", f"{name}.attended", [state, out.product(f"{name}.output", mixed, width, width)])
    read = _normal(out, f"{name}.norm2", state)
    gate, up = (out.product(f"{name}.{part}", read, width, 4 * width) for part in ("gate", "up"))
    gate = out.node("Mul", f"{name}.silu", [gate, out.node("Sigmoid", f"{name}.sigmoid", [gate])])
    down = out.product(f"{name}.down", out.node("Mul", f"{name}.gated", [gate, up]), 4 * width, width)
    return out.node("Add", f"{name}.fed", [state, down])


# --- measuring --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Of a command with all its processes.

    Attributes:
        wall: Seconds.
        cpu: Seconds.
        resident: Most bytes at a time, mapped files too.
        own: Most bytes at a time that no file stands behind.
        written: Bytes.
        code: With which it ended.
        words: Its last line.
    """

    wall: float
    cpu: float
    resident: int
    own: int
    written: int
    code: int
    words: str


class _Watched:
    """Looks at a process and all below it until it's told to stop.

    What a process has written counts as its parent's once that has waited for it: with those that run, that's all.
    """

    def __init__(self, process: int) -> None:
        self.resident = self.own = self.written = 0
        self._root, self._over = process, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            numbers = _below(self._root)
            found = [_numbers(number, "status") for number in numbers]
            self.resident = max(self.resident, sum(item.get("VmRSS:", 0) for item in found) << 10)
            own = sum(item.get("RssAnon:", 0) + item.get("RssShmem:", 0) for item in found)
            self.own = max(self.own, own << 10)
            written = sum(_numbers(number, "io").get("wchar:", 0) for number in numbers)
            self.written = max(self.written, written)


def _below(root: int) -> list[int]:
    found = [root]
    for number in found:
        for task in Path(f"/proc/{number}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
    return found


def _numbers(process: int, name: str) -> dict[str, int]:
    try:
        rows = [line.split() for line in Path(f"/proc/{process}/{name}").read_text().splitlines()]
    except OSError:
        return {}
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def cost_of(words: Sequence[str], seconds: float) -> Cost:
    """Run a command, to its end or until its time is up (code -9).

    Args:
        words: Of the command.
        seconds: That it may take.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT, env=os.environ)
        watched = _Watched(process.pid)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            code = -9
        watched.stop()
        said.seek(0)
        last = ([line for line in said.read().splitlines() if line.strip()] or [""])[-1]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall = time.perf_counter() - started
    return Cost(wall, cpu, watched.resident, watched.own, watched.written, code, last)


def run_alone(paths: Sequence[str], samples: int, tokens: int) -> None:
    """Load models and run inputs through them, as they're written, and nothing else.

    Args:
        paths: Of the models.
        samples: Inputs.
        tokens: Of each.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    draw = np.random.default_rng(0)
    for path in paths:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        for _ in range(0, samples, _BATCH):
            session.run(None, {"ids": draw.integers(0, 1000, (min(_BATCH, samples), tokens))})
        del session


def main() -> int:
    """Make both files, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("layers", "width", "vocabulary", "tokens", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Decoder, name))
    parser.add_argument("--dtype", choices=_TYPES, default="float32")
    parser.add_argument("--inside", action="store_true", help="Weights in the .onnx file.")
    parser.add_argument("--verbs", nargs="*", choices=VERBS, default=VERBS)
    parser.add_argument("--samples", type=int, help="Given to the verbs, and to ONNX Runtime (there 32).")
    parser.add_argument("--seconds", type=float, default=600, help="That a command may take.")
    parser.add_argument("--folder", type=Path, help="Of the files, which are kept there and found again.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        run_alone(options.alone, options.samples, options.tokens)
        return 0
    decoder = Decoder(**{name: getattr(options, name) for name in Decoder.__annotations__})
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch:
        folder = options.folder or Path(scratch)
        size = _make(decoder, folder)
        costs = {"ONNX Runtime": cost_of(_alone(folder, options.samples or 32, decoder.tokens), options.seconds)}
        for verb in options.verbs:
            costs[verb] = cost_of(_command(verb, folder, options.samples), options.seconds)
            shutil.rmtree(folder / "out", ignore_errors=True)
    if options.json:
        rows = {name: vars(cost) for name, cost in costs.items()}
        print(json.dumps({"decoder": vars(decoder), "bytes": size, "rows": rows}, indent=2))
    else:
        _print(decoder, size, costs)
    return 0


def _make(decoder: Decoder, folder: Path) -> int:
    """Write both files where they aren't; returns the bytes of one."""
    folder.mkdir(parents=True, exist_ok=True)
    source, wrong = folder / SOURCE, folder / WRONG
    if not wrong.exists():
        write_decoder(decoder, source)
        role = "scales" if decoder.dtype == "4 bits" else "weight"
        write_wrong(source, wrong, f"layer{decoder.layers // 2}.up.{role}")
        for path in (source, wrong) if decoder.inside else ():
            put_inside(path)
    return sum(item.stat().st_size for item in folder.glob(f"{Path(SOURCE).stem}.*"))


def _alone(folder: Path, samples: int, tokens: int) -> list[str]:
    words = [sys.executable, "-m", "benchmarks.large", "--samples", str(samples), "--tokens", str(tokens)]
    return [*words, "--alone", str(folder / SOURCE), str(folder / WRONG)]


def _command(verb: str, folder: Path, samples: int | None) -> list[str]:
    words = [sys.executable, "-m", "conrepair", verb, str(folder / SOURCE)]
    if verb == "inspect":
        return words
    words += [str(folder / WRONG), "--fresh", "-o", str(folder / "out")]
    return words if samples is None else [*words, "--samples", str(samples)]


def _print(decoder: Decoder, size: int, costs: dict[str, Cost]) -> None:
    kind = f"{decoder.dtype}, weights {'inside' if decoder.inside else 'outside'}"
    print(f"A decoder of {decoder.parameters / 1e6:.0f} M parameters ({kind}, {size / 1e6:.0f} MB a file).\n")
    print(
        "| command | CPU, s | wall, s | CPU / ONNX Runtime | resident, MB | / file | own, MB | written, MB | code |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, cost in costs.items():
        print(
            f"| {name} | {cost.cpu:.1f} | {cost.wall:.1f} | {cost.cpu / costs['ONNX Runtime'].cpu:.2f} "
            f"| {cost.resident / 1e6:.0f} | {cost.resident / size:.2f} | {cost.own / 1e6:.0f} "
            f"| {cost.written / 1e6:.0f} | {cost.code} |"
        )
    print()
    for name, cost in costs.items():
        print(f"{name}: {cost.words}" if cost.words else "", end="\n" if cost.words else "")


if __name__ == "__main__":
    sys.exit(main())
