from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crowd_audit import audit, config_of

from conrepair.application.pipeline.audit import run_and_write


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    """An audit of this machine: models, output, configuration."""
    folder = tmp_path_factory.mktemp("right")
    asked = audit(folder / "models")
    run_and_write(config_of(asked, folder / "out"), folder / "models", quiet=True)
    return folder / "models", folder / "out", asked
