"""`conrepair cache`: results that commands of one or two files keep between them."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from rich.table import Column, Table

from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.files.store import Store
from conrepair.ground.runtime.files.trimming import StoredEntry, entries, trim
from conrepair.ground.runtime.files.user_cache import FOLDER, LIMIT, UserCache, set_limit, user_cache
from conrepair.ground.runtime.outside.environments import environments_folder
from conrepair.ground.runtime.outside.releases import kept_releases, trim_releases
from conrepair.ground.runtime.shown.progress import output_console, say
from conrepair.ground.runtime.words import complain, printable


def cache(options: argparse.Namespace) -> int:
    """Show what's kept, or clear it; set its limit where one is given.

    Raises:
        UsageError: if there's no cache, or another run uses it.
        StorageError: if it can't be written.
    """
    kept = user_cache()
    if kept is None:
        raise UsageError(
            f"the environment variable {FOLDER} is empty, so no results are kept. Unset it, or set it to a folder."
        )
    if options.limit is not None:
        kept = replace(kept, gigabytes=options.limit)
        kept.make()
        with Store(kept.folder) as store:
            set_limit(kept.folder, kept.gigabytes)
            trim(store, kept.limit)
        if user_cache() != kept:
            complain(f"conrepair: the limit is saved, but the environment variable {LIMIT} overrides it")
    if options.action == "clear" and kept.folder.is_dir():
        with Store(kept.folder) as store:
            cleared = trim(store, 0)
        if not cleared:
            raise UsageError(f"another command uses {printable(str(kept.folder))}. Try again when it has ended.")
    if options.action == "clear":
        trim_releases(limit=0)
    held = entries(kept.folder)
    if options.format == "json":
        say(json.dumps(_json(kept, held), indent=2))
    else:
        _show(kept, held)
    return int(ExitCode.EQUIVALENT)


def _by_kind(held: Sequence[StoredEntry]) -> dict[str, list[int]]:
    sizes = defaultdict(list)
    for item in held:
        sizes[item.kind].append(item.size)
    return dict(sorted(sizes.items()))


def _json(kept: UserCache, held: Sequence[StoredEntry]) -> dict[str, object]:
    kinds = {kind: {"entries": len(sizes), "bytes": sum(sizes)} for kind, sizes in _by_kind(held).items()}
    return {
        "folder": str(kept.folder),
        "limit_bytes": kept.limit,
        "bytes": sum(item.size for item in held),
        "kinds": kinds,
        "environments": {
            wanted.name: {"bytes": int(made.gigabytes * 1e9), "used": int(made.used)}
            for wanted, made in kept_releases()
        },
    }


def _show(kept: UserCache, held: Sequence[StoredEntry]) -> None:
    taken = _size(sum(item.size for item in held))
    limit = f" of {kept.gigabytes:g} GB" if kept.limit else "; the limit is 0, so no results are kept"
    say(f"{printable(str(kept.folder))}: {taken}{limit}")
    figures = (Column(heading, justify="right") for heading in ("entries", "size"))
    table = Table("kind of result", *figures, box=None, pad_edge=False)
    for kind, sizes in _by_kind(held).items():
        table.add_row(_KINDS.get(kind, kind.replace("_", " ")), str(len(sizes)), _size(sum(sizes)))
    if held:
        output_console().print(table)
    releases = kept_releases()
    if releases:
        total = sum(made.gigabytes for _, made in releases)
        where = printable(str(environments_folder()))
        say(f"{where}: {total:.1f} GB in environments of other releases, the last used first")
        say("\n".join(f"{wanted.name}  {made.gigabytes:.2f} GB" for wanted, made in releases))


_KINDS = {"look": "compare and localize"}


def _size(count: int) -> str:
    return next(f"{count / unit:.1f} {name}" for unit, name in _UNITS if count >= unit or unit == 1e3)


_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
