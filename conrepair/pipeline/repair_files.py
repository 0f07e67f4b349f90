"""Repair from Python: what `conrepair repair` does for two files, as a function."""

from __future__ import annotations

import argparse
from pathlib import Path

from conrepair.pipeline.repair_command import mended
from conrepair.repair.result import RepairResult

__all__ = ["repair_files"]


def repair_files(
    source: str | Path,
    target: str | Path,
    output: str | Path,
    *,
    data: str | Path | None = None,
    recipe: str | None = None,
    target_recipe: str | None = None,
    inputs: tuple[str, ...] = (),
    samples: int = 72,
    seconds: float = 300.0,
    advice: float = 0.0,
    bake_recipe: bool = False,
) -> RepairResult | None:
    """Mend a conversion with the smallest change, in its own format.

    Models run in worker processes, so a script that calls this must guard its main part
    (`if __name__ == "__main__":`).

    Args:
        source: The model that is right: a file, or a SavedModel folder.
        target: Its conversion, or a folder that `conrepair build` wrote; it's only read.
        output: Folder for the repaired model, patch.json and repair.json. It appears whole, and only where something
            was at fault.
        data: Folder of photos, or .npz/.npy; default: synthetic inputs.
        recipe: Preprocessing of photos: a name, or a recipe.json.
        target_recipe: The same for the target, where it's another one.
        inputs: Of models whose files don't say them, each "[NAME=]batch,3,224,224[:dtype]".
        samples: How many inputs are drawn: a few that layers are looked at with, the others to verify on.
        seconds: After which no further edit is tried.
        advice: Seconds to try other ways to convert the source; at the command line it's 60.
        bake_recipe: Whether operators in front of the input do what photos need.

    Returns:
        What was wrong and what was changed; `mended` says whether the target is the source's equal now. None where
        no layer is at fault on the samples that are looked at.

    Raises:
        ConrepairError: if a file can't be loaded, run or edited.
    """
    options = argparse.Namespace(
        source=str(source),
        target=str(target),
        output=str(output),
        data=None if data is None else str(data),
        recipe=recipe,
        target_recipe=target_recipe,
        input=list(inputs),
        intermediate=[],
        samples=samples,
        seed=0,
        low=None,
        high=None,
        batch_size=4,
        margin=None,
        latent=False,
        timeout=600.0,
        seconds=seconds,
        advice=advice,
        bake_recipe=bake_recipe,
        quiet=True,
    )
    return mended(options)[0].repaired.result
