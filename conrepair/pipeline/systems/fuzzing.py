"""A campaign as a person asks for it: a person's own networks get inputs, and the folder its page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx

from conrepair.campaigns.fuzz_database import DATABASE
from conrepair.campaigns.fuzzing import Campaign
from conrepair.engine.session import Session
from conrepair.fuzz.known import Known, read_known
from conrepair.generate.generated import INPUTS, MODEL
from conrepair.graph.layer_graph import Array
from conrepair.intake.data import write_arrays
from conrepair.pipeline.systems.tracing import checked_onnx, sized
from conrepair.report.fuzz.folder import campaign_output, write_campaign
from conrepair.report.fuzz.summary import Summary
from conrepair.runtime.errors import UsageError
from conrepair.runtime.files import make_folder
from conrepair.runtime.outputs import LIST
from conrepair.runtime.path_text import model_path
from conrepair.runtime.progress import ProgressDisplay
from conrepair.verbs.fuzz import Fuzz
from conrepair.verbs.options import Inputs

__all__ = ["fuzz"]

_OWN, _SAMPLES = "own", 4


def fuzz(asked: Fuzz, root: Path, *, quiet: bool) -> Summary:
    """Run a campaign, or go on with one.

    Args:
        asked: What's wanted.
        root: Its folder.
        quiet: No progress.

    Returns:
        What came of it, as it's written.

    Raises:
        ConrepairError: if a network, a system or the folder isn't what it should be.
    """
    output = campaign_output(root)
    if not (root / DATABASE).is_file() or (root / LIST).is_file():  # one that was interrupted early has no list yet
        output.check()
    known = Known() if asked.known is None else read_known(Path(asked.known))
    own = [item for model in asked.models for item in _own(asked, Path(model), root, quiet=quiet)]
    with ProgressDisplay(quiet=quiet) as display:
        campaign = Campaign(asked, root, own, known, display)
        campaign.run()
    summary = Summary(
        findings=tuple(sorted(campaign.findings.values(), key=lambda item: (bool(item.known), item.name))),
        counts=campaign.counts,
        seconds=campaign.seconds,
        refusals=campaign.refusals,
        seen_in=campaign.seen_in,
        suspicions=campaign.verdicts,
        seed=asked.seed,
        over=campaign.over,
    )
    write_campaign(summary, root)
    return summary


def _own(asked: Fuzz, model: Path, root: Path, *, quiet: bool) -> list[tuple[Path, str]]:
    """A person's network, each time with other drawn inputs, in the campaign's folder, by its hash."""
    path = model_path(model)
    with Session(quiet=quiet) as session:
        checked_onnx(path, session, (), timeout=asked.network_seconds)
        options = Inputs(model=path, samples=_SAMPLES, seed=asked.seed)
        made, arrays = sized(
            options, session, session.room / "given", session.room / "sized", timeout=asked.network_seconds
        )
        proto = onnx.load(made)  # with weights that lie beside it
        try:
            content = proto.SerializeToString(deterministic=True)
        except ValueError as error:  # Protobuf takes no more than 2 GiB
            raise UsageError(f"{path} is too large for a case: {error}. Give a smaller network.") from error
    found = []
    for place, feeds in enumerate(_each(proto, arrays)):
        folder = root / _OWN / f"{hashlib.sha256(content).hexdigest()[:16]}-{place}"
        make_folder(folder)
        (folder / MODEL).write_bytes(content)
        write_arrays(folder / INPUTS, feeds)
        found.append((folder, f"{path}, inputs {place} of seed {asked.seed}"))
    return found


def _each(model: onnx.ModelProto, arrays: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Feeds, as many samples together as the network takes."""
    sizes = {
        item.name: [size.dim_value for size in item.type.tensor_type.shape.dim]
        for item in model.graph.input
        if item.name in arrays
    }
    rows = {name: shape[0] if shape else 1 for name, shape in sizes.items()}
    count = min((len(arrays[name]) // max(most, 1) for name, most in rows.items()), default=1)
    for place in range(min(count, _SAMPLES)):
        taken = {name: arrays[name][place * most : (place + 1) * most] for name, most in rows.items()}
        yield {name: array if sizes[name] else array[0] for name, array in taken.items()}
