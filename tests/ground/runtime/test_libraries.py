"""Libraries that an installation may lack: which extra brings them, and what is said."""

from __future__ import annotations

import sys

import pytest

from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.libraries import EXTRAS, Extra, extra_of_distribution, missing_library


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda extra: extra.name)
def test_each_library_leads_to_the_command_that_brings_it(extra: Extra, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, package in extra.libraries.items():
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ModuleNotFoundError) as error:
            __import__(module)
        missing = missing_library(error.value)
        assert missing is not None
        assert missing.exit_code == ExitCode.USAGE
        assert f"the library {package} isn't installed for {sys.executable}" in str(missing)
        assert str(missing).endswith(f"pip install 'conrepair[{extra.name}]'")
        assert extra_of_distribution(package) is extra
    assert extra.missing == tuple(extra.libraries.values())


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'torch.gone'", name="torch.gone"),  # torch is there, in another version
        ModuleNotFoundError("No module named 'numpy'", name="numpy"),
        ModuleNotFoundError("No module named 'nets'", name="nets"),
        ImportError("cannot import name 'gone' from 'torch'", name="torch"),
        ValueError("torch"),
    ],
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert missing_library(error) is None
