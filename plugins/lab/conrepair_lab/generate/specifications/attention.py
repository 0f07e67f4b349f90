"""Attention, and what tells it where a token stands."""

from __future__ import annotations

from conrepair_lab.generate.settings.expressions import Number
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Broadcast, Lettered, Size
from conrepair_lab.generate.settings.tensors import Range, element_type
from conrepair_lab.generate.specifications.specification import operator


@operator()
def attention(s: Setting) -> None:
    q = s.input("Q", rank=(3, 4), least=1)
    n, rows = q.shape[0], q.shape[-2]
    if q.rank == 4:
        heads, width = q.shape[1], q.shape[3]
        _, others, columns, _ = s.input("K", [n, Size(), Size(), width]).shape
        v = s.input("V", [n, others, columns, Size()])
        depth = v.shape[3]
        result = [n, heads, rows, depth]
    else:
        heads = s.integer("q_num_heads", 1, q.shape[2])
        others = s.choice("kv_num_heads", [count for count in range(1, heads + 1) if heads % count == 0])
        s.require(q.shape[2] % heads == 0, "a width that is no multiple of the heads")
        width = q.shape[2] // heads
        columns = s.input("K", [n, Size(), width * others]).shape[1]
        depth = s.input("V", [n, columns, Size(times=others)]).shape[2] // others
        result = [n, rows, heads * depth]
    s.require(heads % others == 0, "queries that are no multiple of the keys")
    total: Number = columns
    remembered = s.has("present_key")
    if remembered:
        past = s.input("past_key", [n, others, Size(), width]).shape[2]
        s.input("past_value", [n, others, past, depth])
        total = past + columns
    elif s.has("nonpad_kv_seqlen"):
        s.input("nonpad_kv_seqlen", [n], values=Range(1, columns))
    causal = s.flag("is_causal")
    if s.has("attn_mask"):
        mask = Lettered("...qk", {"q": rows, "k": total}, Broadcast((n, heads), one_way=True))
        added = s.input("attn_mask", mask, dtypes=("bool", q.dtype))  # ONNX Runtime broadcasts no other axes
        s.require(not causal or added.dtype != "float64", "ONNX Runtime adds a mask of float32 to it")
    s.maybe(s.real, "scale", 1e-3, 100.0, usual=(0.125,))
    s.real("softcap", 0.0, 100.0, usual=(0.0,))
    mode = s.integer("qk_matmul_output_mode", 0, 3)
    if s.has("softmax_precision"):
        same = s.choice("softmax_precision", (1, 10, 11)) == element_type(q.dtype)
        s.require(same or mode != 3, "ONNX Runtime doesn't convert the softmax back")
    s.output(result)
    if remembered:
        s.output([n, others, total, width])
        s.output([n, others, total, depth])
        if s.has("qk_matmul_output"):
            s.output([n, heads, rows, total])


@operator()
def rotary_embedding(s: Setting) -> None:
    x = s.input("X", rank=(3, 4), least=1)
    n, length = x.shape[0], x.shape[-2]
    width = x.shape[-1]
    if x.rank == 3:
        heads = s.integer("num_heads", 1, width)
        s.require(width % heads == 0, "a width that is no multiple of the heads")
        width = width // heads
    s.require(width % 2 == 0, "a width that has no halves")
    turned = s.integer("rotary_embedding_dim", 0, width)
    s.require(turned % 2 == 0, "a width that has no halves")
    half = (turned or width) // 2
    s.flag("interleaved")
    if s.has("position_ids"):
        cache = s.input("cos_cache", [Size(length), half]).shape  # ONNX Runtime takes no fewer
        s.input("position_ids", [n, length], values=Range(0, cache[0] - 1))
    else:
        cache = s.input("cos_cache", [n, length, half]).shape
    s.input("sin_cache", cache)
    s.output(x.shape)
