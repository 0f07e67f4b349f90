"""PoCL on a processor that its compiler doesn't know."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from conrepair.formats.tvm.opencl_run import SETTING, name_processor, processor

_FIELDS = ctypes.c_void_p * 256


def described(*texts: bytes, version: str = "OpenCL 3.0 PoCL 3.0-rc2  Linux") -> tuple[SimpleNamespace, ctypes.Array]:
    """A device as PoCL describes it: pointers, of which some lead nowhere, and these in a row."""
    fields = _FIELDS(*([8, 2**63] * 128))
    kept = [ctypes.create_string_buffer(text, 80) for text in texts]
    for place, text in enumerate(kept, 80):
        fields[place] = ctypes.addressof(text)
    device = SimpleNamespace(int_ptr=ctypes.addressof(fields), platform=SimpleNamespace(version=version), kept=kept)
    return device, fields


def test_the_name_behind_the_triple_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "haswell")
    device, fields = described(b"generic", b"x86_64-unknown-linux-gnu", b"generic")
    before = list(fields)
    assert name_processor(device)
    assert ctypes.string_at(fields[82]) == b"haswell"
    assert [place for place, value in enumerate(fields) if value != before[place]] == [82]
    assert not name_processor(device), "it has a name now"


@pytest.mark.parametrize(
    ("texts", "version"),
    [
        ((b"x86_64-unknown-linux-gnu", b"znver3"), "OpenCL 3.0 PoCL 3.0-rc2"),
        ((b"generic",), "OpenCL 3.0 PoCL 3.0-rc2"),
        ((b"x86_64-unknown-linux-gnu", b"generic"), "OpenCL 3.0 PoCL 6.0"),
    ],
)
def test_what_is_not_known_stays_as_it_is(texts: tuple[bytes, ...], version: str) -> None:
    device, fields = described(*texts, version=version)
    before = list(fields)
    assert not name_processor(device)
    assert list(fields) == before


def test_a_processor_is_named_by_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    assert processor() in {"skylake-avx512", "haswell", "sandybridge", "penryn", "x86-64"}
    monkeypatch.setenv(SETTING, "znver2")
    assert processor() == "znver2"
