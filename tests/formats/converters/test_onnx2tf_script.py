"""What the script of onnx2tf takes of the files that the tool wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from conrepair.formats.converters.scripts.onnx_tensorflow import float32_file


def test_the_float32_file_is_taken(tmp_path: Path) -> None:
    for name in ("model_float16.tflite", "model_float32.tflite", "saved_model.pb"):
        (tmp_path / name).touch()
    assert float32_file(tmp_path) == tmp_path / "model_float32.tflite"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            ["model_float16.tflite", "variables/variables.index"],
            "only: model_float16.tflite, variables/variables.index",
        ),
        ([], "only: nothing"),
    ],
)
def test_without_one_the_message_lists_what_there_is(tmp_path: Path, files: list[str], words: str) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError, match="wrote no float32 file") as caught:
        float32_file(tmp_path)
    assert words in str(caught.value)


def test_a_folder_that_the_tool_never_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="only: nothing"):
        float32_file(tmp_path / "made")
