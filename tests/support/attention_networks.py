"""Decoder blocks as exporters write them: additive and other masks, rotary embeddings, an offset of the stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx_networks import drawn, written

WIDTH, HEADS, STEPS = 32, 4, 12
SIZE = WIDTH // HEADS
MASKS = {"none": None, "-1e4": -1e4, "-1e9": -1e9, "lowest": float(np.finfo(np.float32).min), "-inf": -np.inf}


def decoder(
    path: Path,
    mask: str = "-1e9",
    *,
    swapped: bool = False,
    scale: float = SIZE**-0.5,
    interleaved: bool = False,
    offset: float = 0.0,
    blocks: int = 2,
    at_fault: tuple[int, ...] | None = None,
) -> Path:
    """Write a network; what is said of attention holds for the blocks at fault, all of them by default.

    Args:
        path: Of the file.
        mask: Of the causal mask that is added to the scores.
        swapped: Queries and keys are exchanged.
        scale: Of the scores.
        interleaved: Rotary embeddings pair neighbours, not halves.
        offset: Added to the stream in front of the blocks and taken away behind them.
        blocks: How many.
        at_fault: Which of them are other than usual.
    """
    lines, weights = [], {
        "heads": np.array([0, 0, HEADS, SIZE]), "flat": np.array([0, 0, WIDTH]), "halves": np.array([SIZE // 2] * 2),
        "pairs": np.array([0, 0, 0, SIZE // 2, 2]), "whole": np.array([0, 0, 0, SIZE]), "last": np.array([-1]),
        "ones": np.array([1, 1]), "big": np.float32(offset),
    }  # fmt: skip
    angles = np.arange(STEPS)[:, None] / 100.0 ** (np.arange(SIZE // 2) / (SIZE // 2))
    weights |= {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    value = MASKS[mask]
    if value is not None:
        weights["mask"] = np.where(np.tri(STEPS, dtype=bool), 0.0, value).astype(np.float32)
    if offset:
        lines.append("t0 = Add (x, big)")
    for place in range(blocks):
        other = at_fault is None or place in at_fault
        t = f"t{place}" if place or offset else "x"
        lines += [f"n{place} = LayerNormalization ({t}, g{place}, h{place})"]
        for role in "qkv":
            lines += [
                f"{role}{place} = MatMul (n{place}, w{role}{place})",
                f"{role}r{place} = Reshape ({role}{place}, heads)",
                f"{role}t{place} = Transpose <perm = [0, 2, 1, 3]> ({role}r{place})",
            ]
        for role in "qk":
            lines += _rotated(f"{role}t{place}", f"{role}p{place}", interleaved=interleaved and other)
        one, two = ("k", "q") if swapped and other else ("q", "k")
        lines += [
            f"kk{place} = Transpose <perm = [0, 1, 3, 2]> ({two}p{place})",
            f"p{place} = MatMul ({one}p{place}, kk{place})",
            f"d{place} = Mul (p{place}, root{place})",
            f"m{place} = Add (d{place}, mask)" if value is not None else f"m{place} = Identity (d{place})",
            f"a{place} = Softmax <axis = -1> (m{place})",
            f"c{place} = MatMul (a{place}, vt{place})",
            f"b{place} = Transpose <perm = [0, 2, 1, 3]> (c{place})",
            f"j{place} = Reshape (b{place}, flat)",
            f"o{place} = MatMul (j{place}, wo{place})",
            f"u{place} = Add (o{place}, {t})",
            f"l{place} = LayerNormalization (u{place}, gg{place}, hh{place})",
            f"up{place} = MatMul (l{place}, wu{place})",
            f"ac{place} = Gelu (up{place})",
            f"dn{place} = MatMul (ac{place}, wd{place})",
            f"t{place + 1} = Add (u{place}, dn{place})",
        ]
        weights[f"root{place}"] = np.float32(scale if other else SIZE**-0.5)
        for index, role in enumerate("qkvo"):
            weights[f"w{role}{place}"] = drawn(WIDTH, WIDTH, seed=20 * place + index, scale=0.25)
        weights[f"wu{place}"] = drawn(WIDTH, 2 * WIDTH, seed=20 * place + 5, scale=0.2)
        weights[f"wd{place}"] = drawn(2 * WIDTH, WIDTH, seed=20 * place + 6, scale=0.15)
        for index, role in enumerate(("g", "h", "gg", "hh")):
            weights[f"{role}{place}"] = drawn(WIDTH, seed=20 * place + 7 + index, scale=0.2) + (index % 2 == 0)
    lines += [f"s = Sub (t{blocks}, big)" if offset else f"s = Identity (t{blocks})", "y = MatMul (s, head)"]
    weights["head"] = drawn(WIDTH, 11, seed=99, scale=0.3)
    text = f"small (float[batch, {STEPS}, {WIDTH}] x) => (float[batch, {STEPS}, 11] y) {{ {chr(10).join(lines)} }}"
    return written(path, text, weights, opset=20)


def _rotated(value: str, result: str, *, interleaved: bool) -> list[str]:
    if not interleaved:
        return [
            f"{value}a, {value}b = Split <axis = -1> ({value}, halves)",
            *_turned(value),
            f"{result} = Concat <axis = -1> ({value}x, {value}y)",
        ]
    return [
        f"{value}v = Reshape ({value}, pairs)",
        f"{value}e, {value}f = Split <axis = -1> ({value}v, ones)",
        f"{value}a = Squeeze ({value}e, last)",
        f"{value}b = Squeeze ({value}f, last)",
        *_turned(value),
        f"{value}g = Unsqueeze ({value}x, last)",
        f"{value}h = Unsqueeze ({value}y, last)",
        f"{value}i = Concat <axis = -1> ({value}g, {value}h)",
        f"{result} = Reshape ({value}i, whole)",
    ]


def _turned(value: str) -> list[str]:
    return [
        f"{value}ac = Mul ({value}a, cos)",
        f"{value}bs = Mul ({value}b, sin)",
        f"{value}x = Sub ({value}ac, {value}bs)",
        f"{value}as = Mul ({value}a, sin)",
        f"{value}bc = Mul ({value}b, cos)",
        f"{value}y = Add ({value}as, {value}bc)",
    ]


def feeds(seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": drawn(2, STEPS, WIDTH, seed=seed, scale=1)}
