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
        raise UsageError(f"{FOLDER} is empty, so no results are kept. Unset it, or name a folder by it.")
    if options.limit is not None:
        kept = replace(kept, gigabytes=options.limit)
        kept.make()
        with Store(kept.folder) as store:
            set_limit(kept.folder, kept.gigabytes)
            trim(store, kept.limit)
        if user_cache() != kept:
            complain(f"conrepair: the limit is kept, but {LIMIT} is set, which goes first")
    if options.action == "clear" and kept.folder.is_dir():
        with Store(kept.folder) as store:
            cleared = trim(store, 0)
        if not cleared:
            raise UsageError(f"another command uses {printable(str(kept.folder))}. Clear it when that has ended.")
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
    }


def _show(kept: UserCache, held: Sequence[StoredEntry]) -> None:
    taken = _size(sum(item.size for item in held))
    limit = f"of {kept.gigabytes:g} GB" if kept.limit else "; the limit is 0, so no results are kept"
    say(f"{printable(str(kept.folder))}: {taken} {limit}".replace(" ;", ";"))
    figures = (Column(heading, justify="right") for heading in ("entries", "size"))
    table = Table("kind", *figures, box=None, pad_edge=False)
    for kind, sizes in _by_kind(held).items():
        table.add_row(kind, str(len(sizes)), _size(sum(sizes)))
    if held:
        output_console().print(table)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
