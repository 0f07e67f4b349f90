"""The folder of generated networks: what is there already, what jobs have made, and the summary of all of it."""

from __future__ import annotations

import collections
import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.json_file import value_of
from conrepair.ground.runtime.files.outputs import Output
from conrepair.ground.runtime.files.scratch import scratch_folder
from conrepair.ground.runtime.files.whole import in_place, make_folder, write_json
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.generated import ABOUT, INPUTS, MODEL, OUTPUTS

SUMMARY, REASON = "generated.json", ".refused"
"""The summary's file; the suffix of a file that says why there's no network."""

WORK = ".generating-"
"""What names of scratch folders begin with."""

_CONVERSIONS = "conversions.json"

_KIND = "generated"
_NUMBERED = re.compile(r"\b([nt])\d+\b")  # names of a network's nodes and tensors
_MOST = 64 << 20  # letters of a file
_IDENTITY = ("seed", "wishes", "versions")
_FILES = (ABOUT, INPUTS, MODEL, OUTPUTS)
_TOLD = {"forms", "operators", "optimized", "patterns", "seen"}
_FOUND = ("differs", "fails", "crashed", "timeout")


def name_of(index: int) -> str:
    """The name of a network's folder, or of what stands for it."""
    return f"{index:05}"


class NetworkFolder:
    """Networks on disk, each in a folder that is there whole or not at all.

    Args:
        root: The folder.
        identity: "seed", "wishes" and "versions": networks of others aren't put beside each other.
        operators: Names of those that may be in networks.
        force: Whether networks of others are removed.

    Attributes:
        root: As given.
        made: Numbers of networks that are there.
        refused: Why there is none, by number.
        conversions: What became of networks in other formats, by number and format.

    Raises:
        UsageError: if the folder has something else, or networks of others; if one that isn't whole, or with `force`
            any one, was changed or holds something else.
    """

    def __init__(
        self, root: Path, identity: Mapping[str, Any], operators: Collection[str], *, force: bool = False
    ) -> None:
        self.root, self._identity = root, json.loads(json.dumps({key: identity[key] for key in _IDENTITY}))
        self.made: set[int] = set()
        self.refused: dict[int, str] = {}
        self.conversions: dict[int, dict[str, dict[str, Any]]] = {}
        self._diversity = Diversity(operators)
        self._counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self._found: dict[int, dict[str, Any]] = {}
        self._seconds = 0.0
        self._open(force)

    def take(self, folder: Path) -> int:
        """Move what a job has made so far; how many networks, refused ones included.

        Args:
            folder: Of the job.
        """
        before = len(self.made) + len(self.refused)
        for entry in sorted(folder.iterdir()):
            if entry.suffix == REASON and entry.stem.isdecimal():
                self.refused[int(entry.stem)] = text_of(entry)
                entry.unlink()
            elif entry.name.isdecimal() and not entry.is_symlink():
                self._network(entry.name).take(entry)
                self._count(int(entry.name))
        return len(self.made) + len(self.refused) - before

    def keep_conversion(self, index: int, name: str, told: Mapping[str, Any], file: Path | None) -> None:
        """Keep what became of a network in another format.

        Args:
            index: Of the network.
            name: Of the format.
            told: What's said of it.
            file: The model, which is moved; None where there's none.
        """
        self.conversions.setdefault(index, {})[name] = dict(told)
        with self._network(name_of(index)).write(parts=True) as temporary:
            if file is not None:
                file.rename(temporary / file.name)
            write_json(temporary / _CONVERSIONS, self.conversions[index])

    def summary(self, count: int, seconds: float) -> dict[str, Any]:
        """All of it, as JSON.

        Args:
            count: How many networks there should be.
            seconds: That this run took.
        """
        self._diversity.operators = sorted({*self._diversity.operators, *self._diversity.nodes})
        verdicts = collections.Counter(item["verdict"] for item in self._found.values())
        return {
            "kind": _KIND,
            **self._identity,
            "count": count,
            "made": len(self.made),
            "refused": [{"index": index, "reason": reason} for index, reason in sorted(self.refused.items())],
            "left": max(0, count - len(self.made) - len(self.refused)),
            "optimized": {
                "same": len(self.made) - sum(verdicts.values()),
                **{name: verdicts[name] for name in _FOUND},
                "found": [{"index": index, **item} for index, item in sorted(self._found.items())],
            },
            "conversions": self._converted(),
            "diversity": self._diversity.measures(),
            **{
                name: dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))
                for name, counter in sorted(self._counts.items())
            },
            "seconds": round(self._seconds + seconds, 3),
        }

    def write(self, count: int, seconds: float) -> dict[str, Any]:
        """Write the summary; it."""
        value = self.summary(count, seconds)
        write_json(self.root / SUMMARY, value)
        return value

    def _converted(self) -> dict[str, Any]:
        formats = dict.fromkeys(name for item in self.conversions.values() for name in item)
        return {name: self._of_format(name) for name in formats}

    def _of_format(self, name: str) -> dict[str, Any]:
        items = {index: item[name] for index, item in sorted(self.conversions.items()) if name in item}
        failed = collections.Counter(
            _NUMBERED.sub(r"\1..", item["reason"]) for item in items.values() if item["verdict"] == "failed"
        )
        return {
            "same": sum(item["verdict"] == "same" for item in items.values()),
            "differs": [{"index": index, **item} for index, item in items.items() if item["verdict"] == "differs"],
            "failed": failed.total(),
            "reasons": dict(failed.most_common()),
        }

    def _open(self, force: bool) -> None:
        earlier = _read(self.root / SUMMARY) if self.root.exists() else {}
        if earlier.get("kind") != _KIND:
            if self.root.exists() and (not self.root.is_dir() or any(self.root.iterdir())):
                raise UsageError(
                    f"{self.root} exists, and isn't a folder of generated networks. Choose another folder (-o)."
                )
        elif force:
            networks = [self._network(folder.name) for folder in self._folders()]
            for network in networks:
                network.check()
            with scratch_folder(self.root, WORK) as scratch:
                for network in networks:
                    network.path.rename(scratch / network.path.name)
            earlier = {}
        else:
            self._check(earlier)
        make_folder(self.root)
        self.refused = {item["index"]: item["reason"] for item in earlier.get("refused", ())}
        self._seconds = float(earlier.get("seconds", 0.0))
        for folder in self._folders():
            if _is_whole(folder):
                self._count(int(folder.name))
            else:  # it's made again
                self._network(folder.name).check()

    def _check(self, earlier: Mapping[str, Any]) -> None:
        other = {
            f"{key} {name}": (mine, theirs)
            for key in _IDENTITY
            for name, mine, theirs in _pairs(self._identity[key], earlier.get(key))
            if mine != theirs
        }
        if other:
            told = "; ".join(f"{name.strip()}: {theirs}, not {mine}" for name, (mine, theirs) in other.items())
            raise UsageError(
                f"{self.root} has networks that were made with other options ({told}). The same options continue "
                "them; else choose another folder (-o), or --force to replace them."
            )

    def _network(self, name: str) -> Output:
        return Output(self.root / name, "network")

    def _folders(self) -> Iterator[Path]:
        for entry in sorted(self.root.iterdir()):
            if entry.name.isdecimal() and entry.name == name_of(int(entry.name)):
                yield entry

    def _count(self, index: int) -> None:
        folder = self.root / name_of(index)
        about = read_about(folder)
        self.made.add(index)
        self.refused.pop(index, None)
        self._counts["operators"].update(about["operators"])
        self._diversity.add_seen(about["seen"])
        for part in ("forms", "patterns"):
            self._counts[part].update(about[part])
        if about["optimized"]["verdict"] != "same":
            self._found[index] = about["optimized"]
        if (folder / _CONVERSIONS).is_file():
            self.conversions[index] = _read(folder / _CONVERSIONS)


def _is_whole(folder: Path) -> bool:
    """Whether a network is there as it was made, not damaged since."""
    return all((folder / name).is_file() for name in _FILES) and read_about(folder).keys() >= _TOLD


def _pairs(mine: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    """What two values of the identity have under each name."""
    if not isinstance(mine, Mapping):
        yield "", mine, theirs
        return
    others = theirs if isinstance(theirs, Mapping) else {}
    for name in {**mine, **others}:
        yield name, mine.get(name), others.get(name)


def read_about(folder: Path) -> dict[str, Any]:
    """What is said of a network; nothing where its folder isn't whole.

    Args:
        folder: Of the network.
    """
    return _read(folder / ABOUT)


def _read(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        value = value_of(text_of(path))
        return value if isinstance(value, dict) else {}
    return {}


def text_of(path: Path) -> str:
    """What is in a file that a job has left.

    Args:
        path: No link is followed.
    """
    with open(path, encoding="utf-8", errors="replace", opener=in_place) as stream:
        return stream.read(_MOST)
