"""What's known by name: our own, and what other packages bring as entry points (docs/plugins.md).

Nothing is imported before it's used, and entry points aren't read before something is asked for that's none of ours.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from conrepair.ground.runtime.errors import ConfigError

GROUP = "conrepair."
"""What the groups of entry points begin with that are read."""

_Known = TypeVar("_Known")


def imported(value: str) -> Any:
    """What stands in a module.

    Args:
        value: "package.module:attribute".
    """
    module, _, attribute = value.partition(":")
    return functools.reduce(getattr, attribute.split("."), importlib.import_module(module))


@dataclass(frozen=True)
class Plugin:
    """An entry point of another package.

    Attributes:
        group: Without `GROUP`.
        name: That it's asked for by.
        value: "package.module:attribute".
        package: The distribution that brings it.
        version: Of that.
        problem: What's wrong with it, as far as that's known without importing it; "" for nothing.
    """

    group: str
    name: str
    value: str
    package: str
    version: str
    problem: str = ""

    def __str__(self) -> str:
        """For a message."""
        return f"plug-in {self.name} of {self.package} {self.version}"

    def load(self) -> Any:
        """Import it.

        Raises:
            ConfigError: if that fails, whatever its module raises.
        """
        try:
            return imported(self.value)
        # Code of others, which raises anything.
        except Exception as error:
            words = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise ConfigError(
                f"{self} can't be imported ({self.value}): {words}. Install what it lacks, or ask who wrote it; "
                "`conrepair doctor` lists all plug-ins."
            ) from error


@functools.cache
def plugins() -> tuple[Plugin, ...]:
    """All that installed packages bring, in the order in which Python finds these; nothing is imported."""
    import importlib.metadata  # it reads mail, which takes a while to import

    found: list[Plugin] = []
    whose: dict[tuple[str, str], str] = {}
    packages: set[str] = set()
    for distribution in importlib.metadata.distributions():
        if f"[{GROUP}" not in (distribution.read_text("entry_points.txt") or ""):
            continue
        package, version = distribution.name, distribution.version
        if package in packages:  # a folder further behind has it, too, which nothing is imported from
            continue
        packages.add(package)
        for point in distribution.entry_points:
            group = point.group.removeprefix(GROUP)
            if group != point.group:
                first = whose.setdefault((group, point.name), package)
                taken = "" if first == package else f"{first} has a plug-in of that name, too, which comes first"
                found.append(Plugin(group, point.name, point.value, package, version, taken))
    return tuple(found)


def named(group: str) -> dict[str, str]:
    """What plug-ins of a group are, by their names, as "package.module:attribute"."""
    return {item.name: item.value for item in plugins() if item.group == group and not item.problem}


class Registry(Mapping[str, _Known], Generic[_Known]):
    """Things of a sort by their names: our own, then those of plug-ins that can be imported.

    Args:
        group: Of entry points, without `GROUP`.
        own: Ours, or where they are, as "package.module:attribute".
        is_one: What something must be an instance of.
    """

    def __init__(self, group: str, own: Mapping[str, _Known | str], is_one: Any) -> None:
        self.group, self.own, self._is_one = group, own, is_one
        self._loaded: dict[str, _Known] = {}

    def __getitem__(self, name: str) -> _Known:
        """What has a name.

        Raises:
            KeyError: if there's none.
            ConfigError: if it's a plug-in that can't be imported, or is something else.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> _Known:
        known = self.own.get(name)
        if isinstance(known, str):
            return cast(_Known, imported(known))
        if known is not None:
            return known
        plugin = next(item for item in (*self._plugins(), None) if item is None or item.name == name)
        if plugin is None:
            raise KeyError(name)
        found = plugin.load()
        if not isinstance(found, self._is_one):
            raise ConfigError(
                f"{plugin} is a {type(found).__name__}, and entry points of {GROUP}{self.group} are "
                f"{self._is_one.__name__}s (docs/plugins.md)."
            )
        return cast(_Known, found)

    def _plugins(self) -> Iterator[Plugin]:
        yield from (
            item for item in plugins() if item.group == self.group and not item.problem and item.name not in self.own
        )

    def __contains__(self, name: object) -> bool:
        """Whether there's one of that name that can be imported; others aren't imported to find out."""
        return name in self.own or any(item.name == name and not self.problem(item) for item in self._plugins())

    def __iter__(self) -> Iterator[str]:
        """Names; plug-ins that can't be imported are left out."""
        yield from self.own
        yield from (item.name for item in self._plugins() if not self.problem(item))

    def __len__(self) -> int:
        """How many there are."""
        return sum(1 for _ in self)

    def problem(self, plugin: Plugin) -> str:
        """What's wrong with a plug-in of this group; "" for nothing."""
        if plugin.name in self.own:
            return f"conrepair itself has a {self.group.removesuffix('s')} called {plugin.name}: rename the plug-in's"
        if plugin.problem:
            return plugin.problem
        try:
            self[plugin.name]
        except ConfigError as error:
            return str(error)
        return ""


class Names(tuple[str, ...]):
    """Our own names of a sort; a plug-in's is among them, too, and listed in messages alone."""

    group: str

    def __new__(cls, group: str, own: tuple[str, ...]) -> Names:
        """See the class.

        Args:
            group: Of entry points, without `GROUP`.
            own: Ours.
        """
        found = super().__new__(cls, own)
        found.group = group
        return found

    def __contains__(self, name: object) -> bool:
        """Whether there's something of that name."""
        return super().__contains__(name) or name in named(self.group)

    @property
    def everything(self) -> tuple[str, ...]:
        """Ours, and those of plug-ins."""
        return (*self, *(name for name in named(self.group) if name not in tuple(self)))


FUNCTIONS: Registry[Any] = Registry("functions", {}, object)
"""What other packages add to `conrepair` itself: functions and types by their names."""
