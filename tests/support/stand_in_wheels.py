"""Wheels of no content that pip installs without a network; what they stand for is what's installed here."""

from __future__ import annotations

import sysconfig
import zipfile
from collections.abc import Mapping
from pathlib import Path


def wheels(folder: Path, versions: Mapping[str, str]) -> dict[str, str]:
    """Write a wheel for each, the first of which lets Python find all that ours finds.

    Args:
        folder: Is made.
        versions: By name.

    Returns:
        Variables by which pip takes these and no others.
    """
    folder.mkdir(parents=True)
    found = {"ours.pth": sysconfig.get_path("purelib") + "\n"}
    for name, version in versions.items():
        told = f"{name.replace('-', '_')}-{version}"
        about = {
            f"{told}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{told}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        listed = "".join(f"{file},,\n" for file in [*about, *found, f"{told}.dist-info/RECORD"])
        with zipfile.ZipFile(folder / f"{told}-py3-none-any.whl", "w") as wheel:
            for file, text in {**about, **found, f"{told}.dist-info/RECORD": listed}.items():
                wheel.writestr(file, text)
        found = {}
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
