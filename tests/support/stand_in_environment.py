"""An environment that stands for one of another release: its Python finds what ours finds."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from conrepair.ground.runtime.files.whole import write_json
from conrepair.ground.runtime.outside.environments import Environment

MAKES_IT = """
mkdir -p "$4/bin"
printf '%s\\n' '#!/bin/sh' 'echo "asked for a (from -r requirements.txt)"' > "$4/bin/python"
chmod +x "$4/bin/python"
"""
"""Lines of shell that make an environment where a Python would: for one that's run in its place."""


def stand_in(within: Environment, root: Path) -> Path:
    """Make it.

    Args:
        within: For which.
        root: Where environments are kept.

    Returns:
        The folder of what it finds before what ours finds.
    """
    folder = root / f"{within.name}-{within.key}"
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib"))
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    (root / f".{within.name}.lock").touch()
    write_json(folder / "record.json", {"gigabytes": 0, "seconds": 0})
    return packages
