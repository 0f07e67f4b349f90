from __future__ import annotations

import contextlib
import io
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from conrepair.ground.data.pictures.decode import decode_picture, photo_formats, photo_suffixes
from conrepair.ground.runtime.errors import DataError

ORIENTATION = 0x0112


def picture(height: int = 24, width: int = 36, seed: int = 0) -> np.ndarray:
    """A gradient with noise, different in every corner and channel."""
    rows, columns = np.mgrid[0:height, 0:width]
    ramp = np.stack([rows * 3, columns * 4, rows + columns], axis=-1)
    noise = np.random.default_rng(seed).integers(0, 60, ramp.shape)
    return np.clip(ramp + noise, 0, 255).astype(np.uint8)


def save(path: Path, image: Image.Image, **options: object) -> Path:
    image.save(path, **options)
    return path


def test_rgb_png_is_returned_as_it_is(tmp_path: Path) -> None:
    pixels = picture()
    result = np.array(decode_picture(save(tmp_path / "a.png", Image.fromarray(pixels))))
    assert result.dtype == np.uint8
    assert result.flags.c_contiguous
    assert result.flags.writeable
    np.testing.assert_array_equal(result, pixels)


def test_a_path_may_be_text(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", Image.fromarray(picture()))
    np.testing.assert_array_equal(np.array(decode_picture(os.fspath(path))), picture())


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [
        ("1", ".png"),
        ("L", ".png"),
        ("L", ".jpg"),
        ("P", ".png"),
        ("P", ".gif"),
        ("RGB", ".jpg"),
        ("RGB", ".webp"),
        ("RGBA", ".png"),
        ("LA", ".png"),
        ("CMYK", ".jpg"),
        ("CMYK", ".tif"),
        ("YCbCr", ".jpg"),
        ("YCbCr", ".tif"),
        ("LAB", ".tif"),
    ],
)
def test_modes_equal_pillows_convert(tmp_path: Path, mode: str, suffix: str) -> None:
    image = Image.fromarray(picture())
    if mode == "LAB":
        image = Image.frombytes("LAB", image.size, image.tobytes())
    elif mode in ("LA", "RGBA"):
        image.putalpha(Image.fromarray(picture(seed=1)[..., 0]))
        image = image.convert(mode)
    else:
        image = image.convert(mode)
    path = save(tmp_path / f"a{suffix}", image)
    with Image.open(path) as opened:
        expected = np.asarray(opened.convert("RGB"))
    result = np.array(decode_picture(path))
    assert result.shape == (24, 36, 3)
    np.testing.assert_array_equal(result, expected)


def test_alpha_is_dropped_not_blended(tmp_path: Path) -> None:
    image = Image.new("RGBA", (2, 2), (200, 100, 50, 0))
    result = np.array(decode_picture(save(tmp_path / "a.png", image)))
    assert (result == (200, 100, 50)).all()


@pytest.mark.parametrize("transparency", [1, bytes([255, 0, 128])])
def test_transparent_palette_colours_keep_their_colour(tmp_path: Path, transparency: int | bytes) -> None:
    image = Image.new("P", (3, 1))
    image.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    image.putdata([0, 1, 2])
    path = save(tmp_path / "a.png", image, transparency=transparency)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = np.array(decode_picture(path))
    assert result[0].tolist() == [[10, 20, 30], [40, 50, 60], [70, 80, 90]]


def test_premultiplied_grey_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image.merge("LA", [Image.new("L", (2, 2), 80), Image.new("L", (2, 2), 255)])
    path = save(tmp_path / "a.png", image)
    real = Image.open

    def opens_premultiplied(*args: object, **options: object) -> Image.Image:
        return real(*args, **options).convert("La")

    monkeypatch.setattr(Image, "open", opens_premultiplied)
    assert (np.array(decode_picture(path)) == 80).all()


def test_16_bit_png_is_scaled(tmp_path: Path) -> None:
    values = np.array([[0, 128, 129, 257, 32768, 65535]], dtype=np.uint16)
    path = save(tmp_path / "a.png", Image.fromarray(values))
    with Image.open(path) as image:
        assert image.mode.startswith("I")
    expected = np.rint(values / 257.0).astype(np.uint8)
    np.testing.assert_array_equal(np.array(decode_picture(path))[..., 0], expected)
    assert expected.tolist() == [[0, 0, 1, 1, 128, 255]]


def test_big_endian_16_bit_tiff_is_scaled(tmp_path: Path) -> None:
    values = np.array([[0, 1000, 65535]], dtype=np.uint16)
    image = Image.frombytes("I;16B", (3, 1), values.astype(">u2").tobytes())
    path = save(tmp_path / "a.tif", image)
    assert np.array(decode_picture(path))[0, :, 0].tolist() == [0, 4, 255]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0, 100, 255], [0, 100, 255]), ([0, 256, 65535], [0, 1, 255]), ([-5, 9, 70000], [0, 0, 255])],
)
def test_mode_i_depends_on_its_range(tmp_path: Path, values: list[int], expected: list[int]) -> None:
    image = Image.fromarray(np.array([values], dtype=np.int32))
    assert image.mode == "I"
    result = np.array(decode_picture(save(tmp_path / "a.tif", image)))
    assert result[0, :, 0].tolist() == expected
    assert result[0, :, 2].tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 100.6, 300.0], [0, 101, 255]),
        ([-1.0, float("nan"), float("inf")], [0, 0, 255]),
    ],
)
def test_mode_f_depends_on_its_range(tmp_path: Path, values: list[float], expected: list[int]) -> None:
    image = Image.fromarray(np.array([values], dtype=np.float32))
    result = np.array(decode_picture(save(tmp_path / "a.tif", image)))
    assert result[0, :, 1].tolist() == expected


# What orientation k does to the stored pixels to make them upright (EXIF 2.32, table 6).
UPRIGHT = {
    1: lambda p: p,
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.transpose(1, 0, 2),
    6: lambda p: np.rot90(p, -1),
    7: lambda p: p[::-1, ::-1].transpose(1, 0, 2),
    8: lambda p: np.rot90(p, 1),
}


@pytest.mark.parametrize("orientation", UPRIGHT)
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".webp"])
def test_exif_orientation_is_applied(tmp_path: Path, orientation: int, suffix: str) -> None:
    stored = Image.fromarray(picture())
    plain = save(tmp_path / f"plain{suffix}", stored)
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    turned = save(tmp_path / f"turned{suffix}", stored, exif=exif.tobytes())
    expected = UPRIGHT[orientation](np.array(decode_picture(plain)))
    np.testing.assert_array_equal(np.array(decode_picture(turned)), expected)


def test_orientation_is_applied_to_16_bits(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.uint16).reshape(2, 3) * 10000
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    path = save(tmp_path / "a.png", Image.fromarray(values), exif=exif.tobytes())
    expected = np.rot90(np.rint(values / 257.0), -1)
    np.testing.assert_array_equal(np.array(decode_picture(path))[..., 0], expected)


def test_damaged_exif_is_ignored(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", Image.fromarray(picture()), exif=b"Exif\0\0MM\0garbage")
    np.testing.assert_array_equal(np.array(decode_picture(path)), picture())


def test_only_the_first_frame_counts(tmp_path: Path) -> None:
    first, second = Image.new("L", (4, 4), 10), Image.new("L", (4, 4), 200)
    path = save(tmp_path / "a.gif", first, save_all=True, append_images=[second])
    assert (np.array(decode_picture(path)) == 10).all()


# --- Errors ---


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jpg doesn't exist\. Check"):
        np.array(decode_picture(tmp_path / "none.jpg"))


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        np.array(decode_picture(tmp_path))


def test_text_named_jpg(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_text("not an image")
    with pytest.raises(DataError, match=r"a\.jpg is not an image.*Remove it"):
        np.array(decode_picture(path))


def test_postscript_named_jpg_never_reaches_ghostscript(tmp_path: Path) -> None:
    path = tmp_path / "a.eps"
    Image.fromarray(picture()).save(path)
    with pytest.raises(DataError, match="is not an image"):
        np.array(decode_picture(path.rename(tmp_path / "a.jpg")))


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.touch()
    with pytest.raises(DataError, match=r"a\.jpg is an empty file"):
        np.array(decode_picture(path))


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp", ".gif", ".tif"])
def test_truncated_file(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"a{suffix}", Image.fromarray(picture(200, 200)))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=rf"a\{suffix} is (damaged or cut off|not an image)"):
        np.array(decode_picture(path))


def test_decompression_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.png", Image.fromarray(picture()))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(DataError, match=r"a\.png was not decoded: .*864 pixels.*smaller size"):
        np.array(decode_picture(path))


def test_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.png", Image.fromarray(picture()))

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "load", fail)
    with pytest.raises(DataError, match="don't fit in memory"):
        np.array(decode_picture(path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", Image.fromarray(picture()))
    path.chmod(0)
    with pytest.raises(DataError, match="permission denied"):
        np.array(decode_picture(path))


def encoded(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture()).save(stream, kind)
    return stream.getvalue()


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    kind=st.sampled_from(["JPEG", "PNG", "GIF", "TIFF", "BMP", "WEBP", "PPM", "ICO", "TGA"]),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=6),
    kept=st.floats(0.05, 1.0),
)
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_decode_or_raise_our_error(
    tmp_path: Path, kind: str, changes: list[tuple[int, int]], kept: float
) -> None:
    content = bytearray(encoded(kind))
    for position, value in changes:
        content[position % len(content)] = value
    path = tmp_path / "a.jpg"
    path.write_bytes(content[: int(len(content) * kept)])
    with contextlib.suppress(DataError):
        result = np.array(decode_picture(path))
        assert result.dtype == np.uint8
        assert result.shape[2:] == (3,)


def test_formats_and_suffixes() -> None:
    assert {"JPEG", "PNG", "WEBP", "TIFF"} <= set(photo_formats())
    assert "EPS" not in photo_formats()
    assert {".jpg", ".jpeg", ".png", ".bmp", ".webp"} <= photo_suffixes()
    assert not {".eps", ".pdf", ".mpg", ".txt", ".csv"} & photo_suffixes()
