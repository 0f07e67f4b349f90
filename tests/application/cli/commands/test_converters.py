"""`conrepair converters`: each with the formats, tools and options."""

from __future__ import annotations

import pytest

from conrepair.application.cli import main
from conrepair.formats.converters.all_converters import CONVERTERS


def test_converters_are_listed_by_formats_with_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["converters"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for converter in CONVERTERS.values():
        place = next(
            number for number, line in enumerate(lines) if line.strip().split(":")[0].split(" (")[0] == converter.name
        )
        formats = next(line for line in reversed(lines[:place]) if not line.startswith(" "))
        assert formats == f"{converter.source} to {converter.target}"
        assert ("(used only where --via names it)" in lines[place]) is not converter.automatic
        told = lines[place + 1 : place + 1 + len(converter.options)]
        assert [line.split()[0] for line in told] == list(converter.options)
    assert "Made by" not in lines[0]
    assert lines[-1].startswith("next: `conrepair convert MODEL --to tflite --via keras-tflite")
