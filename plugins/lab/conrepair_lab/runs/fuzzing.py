"""A campaign as a person asks for it: a person's own networks get inputs, and the folder its page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from conrepair.application.engine.place import make_environments
from conrepair.application.engine.session import Session
from conrepair.application.verbs.options import Inputs
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.whole import make_folder
from conrepair.ground.runtime.path_text import model_path
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.shown.standing import Standing
from conrepair_lab.campaigns.fuzz_database import DATABASE
from conrepair_lab.campaigns.fuzz_networks import Source, functions_of, rounds
from conrepair_lab.campaigns.fuzzing import Campaign
from conrepair_lab.cases.shape_inputs import fitted
from conrepair_lab.fuzz.known import Known, read_known
from conrepair_lab.generate.checks import check_wishes
from conrepair_lab.generate.generated import INPUTS, MODEL
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.report.fuzz.folder import DOCUMENT, FEED, FINDINGS, PAGE, campaign_output, write_campaign
from conrepair_lab.report.fuzz.summary import Summary
from conrepair_lab.runs.tracing import checked_onnx, sized
from conrepair_lab.systems.registry import entry

_OWN, _SAMPLES = "own", 4


@dataclass(frozen=True)
class _Network:
    name: str
    content: bytes
    feeds: Mapping[str, Array]
    source: str


def fuzz(asked: Fuzz, root: Path, *, quiet: bool, source: Source = rounds) -> Summary:
    """Run a campaign, or go on with one.

    Args:
        asked: What's wanted.
        root: Its folder.
        quiet: No progress.
        source: Of its networks.

    Returns:
        What came of it, as it's written.

    Raises:
        ConrepairError: if a network, a system or the folder isn't what it should be.
    """
    output = campaign_output(root)
    if (root / DATABASE).is_file():
        output.check_parts((FINDINGS, PAGE, DOCUMENT, FEED))
    else:
        output.check()
    entries = [entry(name) for name in asked.entries]  # says which there are, before anything is written
    functions_of(asked)  # so that they are refused before, too
    if not asked.learn and not asked.grown_from:
        check_wishes(asked.wishes, frozenset())
    known = Known() if asked.known is None else read_known(Path(asked.known))
    networks = [_own(asked, Path(model), quiet=quiet) for model in asked.models]
    own = [_written(network, root) for each in networks for network in each]

    def tell(standing: Standing | None = None) -> None:
        write_campaign(campaign.summary, root, live=True, standing=standing)

    with ProgressDisplay(quiet=quiet, page=tell) as display:
        campaign = Campaign(asked, root, own, known, display, source)
        make_environments((need for each in entries for need in each.runs.needs(each.chosen)), display)
        campaign.run(tell)
    write_campaign(campaign.summary, root)
    return campaign.summary


def _own(asked: Fuzz, model: Path, *, quiet: bool) -> list[_Network]:
    """A person's network, each time with other drawn inputs."""
    path = model_path(model)
    with Session(quiet=quiet) as session:
        checked_onnx(path, session, (), timeout=asked.network_seconds)
        options = Inputs(
            model=path, data=asked.data, samples=_SAMPLES, seed=asked.seed, timeout=asked.network_seconds
        )
        made, arrays = sized(options, session, session.room / "given", session.room / "sized")
        proto = onnx.load(made)  # with weights that lie beside it
        try:
            content = proto.SerializeToString(deterministic=True)
        except ValueError as error:  # Protobuf takes no more than 2 GiB
            raise UsageError(f"{path} is too large for a case: {error}. Give a smaller network.") from error
    feeds_of = list(_each(proto, arrays))
    if asked.data is None:
        generator = np.random.default_rng(asked.seed)
        feeds_of = [fitted(proto, feeds, generator) for feeds in feeds_of]
    values = b"".join(array.tobytes() for feeds in feeds_of for _, array in sorted(feeds.items()))
    name = hashlib.sha256(content + values).hexdigest()[:16]
    told = f"seed {asked.seed}" if asked.data is None else "the data"
    return [
        _Network(f"{name}-{place}", content, feeds, f"{path.name}, inputs {place} of {told}")
        for place, feeds in enumerate(feeds_of)
    ]


def _written(network: _Network, root: Path) -> tuple[Path, str]:
    """Put a network into the campaign's folder; the place, and where it comes from."""
    folder = root / _OWN / network.name
    make_folder(folder)
    (folder / MODEL).write_bytes(network.content)
    write_arrays(folder / INPUTS, network.feeds)
    return folder, network.source


def _each(model: onnx.ModelProto, arrays: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Feeds, as many samples together as the network takes."""
    sizes = {
        item.name: [size.dim_value for size in item.type.tensor_type.shape.dim]
        for item in model.graph.input
        if item.name in arrays
    }
    rows = {name: shape[0] if shape else 1 for name, shape in sizes.items()}
    count = min(
        (
            len(arrays[name]) // (1 if arrays[name].ndim > len(sizes[name]) else max(most, 1))
            for name, most in rows.items()
        ),
        default=1,
    )
    for place in range(min(count, _SAMPLES)):
        yield {
            name: arrays[name][place]
            if arrays[name].ndim > len(sizes[name])  # samples have an axis of their own
            else arrays[name][place * most : (place + 1) * most]
            for name, most in rows.items()
        }
