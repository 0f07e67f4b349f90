"""One option of a verb: its default, its words, and how its value is read, from Python and from a shell."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, ParamSpec, Self, TypeVar, dataclass_transform

from conrepair.application.verbs import numbers
from conrepair.ground.intake import arguments
from conrepair.ground.intake.arguments import Reader
from conrepair.ground.intake.flags import declare_flag, in_python
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair.ground.runtime.words import meant

P = ParamSpec("P")
R = TypeVar("R")
Asked = TypeVar("Asked", bound="Options")
_PACKAGE = "conrepair"
_KEY, _WORDS = "about", "words"
_SMALL = 1e-3
_NAME, _FIRST = re.compile(r"`(\w+)`"), re.compile(r"^\w+")


@dataclass(frozen=True)
class Value:
    """How a value is read.

    Attributes:
        checked: Given the option's name and what Python gives, returns what's meant.
        parsed: Given a word of the shell; True: the option is a switch, which takes none.
        metavar: What help calls it.
        many: Whether the option is repeated.
        choices: What it may be; () for anything.
    """

    checked: Reader
    parsed: Callable[[str], Any] | Literal[True] = str
    metavar: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()


SWITCH = Value(arguments.flag, parsed=True)


@dataclass(frozen=True, kw_only=True)
class About:
    """What is said of an option, once for all who show it.

    Attributes:
        words: Whole sentences; other options stand in `these`, and are shown as each reader types them.
        value: How it's read.
        group: Of help.
        usual: The default in words, where the value doesn't say it.
        typed: What's said in a shell in place of the words, where other values are given there.
        flag: In the shell; None: its name; "": Python alone has it.
        key: Of a configuration that means the same, as "repair.seconds".
        searches: Whether it's the time of a search, which a limit for the whole command bounds.
        seldom: Whether few need it: `--help` names it alone, `--help-all` says what it means.
    """

    words: str
    value: Value
    group: str
    usual: str = ""
    typed: str = ""
    flag: str | None = None
    key: str = ""
    searches: bool = False
    seldom: bool = False

    def named(self, name: str, section: str) -> About:
        """The same, with the flag and the key that it has by its name."""
        flag = f"--{name.replace('_', '-')}" if self.flag is None else self.flag
        return dataclasses.replace(self, flag=flag, key=self.key or (f"{section}.{name}" if section else ""))


def option(
    words: str, value: Value = SWITCH, group: str = "", *, default: Any = MISSING, kw_only: bool = True, **more: Any
) -> Any:
    """A field of `Options`.

    Args:
        words: Whole sentences.
        value: How it's read; without one the option is a switch.
        group: Of help; "": the one that the class names.
        default: Its value where nobody gives one; none: it must be given.
        kw_only: Whether Python calls it by its name alone.
        **more: What else `About` has, by its names: usual, typed, flag, key, searches.
    """
    told = About(words=words, value=value, group=group, **more)
    return dataclasses.field(default=default, kw_only=kw_only, metadata={_KEY: told})


def model(words: str, *, kw_only: Literal[False]) -> Any:
    """A field for a model, which comes first and has no default."""
    return dataclasses.field(kw_only=kw_only, metadata={_WORDS: words})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option, model))
def options(group: str = "", *, seldom: str = "") -> Callable[[type[Asked]], type[Asked]]:
    """Make a class of options a dataclass, frozen and by keyword.

    Args:
        group: Of help, for those of its options that name no other.
        seldom: Names of those of its options that few need, separated by spaces.
    """

    def declared(verb: type[Asked]) -> type[Asked]:
        own = {name: item for name, item in vars(verb).items() if isinstance(item, dataclasses.Field)}
        few = {name: own[name] for name in seldom.split()}
        for name, item in own.items():
            if told := item.metadata.get(_KEY):
                told = dataclasses.replace(told, group=told.group or group, seldom=name in few)
                item.metadata = MappingProxyType({_KEY: told})
        made = dataclass(frozen=True, kw_only=True)(verb)
        for name, about, default in made.declared():
            if about.flag:
                declare_flag(about.flag, f"{name}={not default if about.value.parsed is True else ''}")
        return made

    return declared


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a verb is asked for; its fields are the only place that declares them. Values are checked when it's made.

    Attributes:
        section: Of a configuration that has them by their names; "": none has.

    Raises:
        UsageError: for a value that can't be meant, by the option's name.
    """

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Read each value that is given; a default is as it would be read."""
        for name, about, default in self.declared():
            value = getattr(self, name)
            if value is not default:
                found = about.value.checked(name, value)
                known = getattr(about.value.choices, "everything", about.value.choices)
                if known and value != default and found not in known:
                    if close := meant(str(found), known):
                        raise UsageError(f"{name} is {found!r}{close} Known are {', '.join(known)}.")
                    raise arguments.refused(name, value, f"one of {', '.join(known)}")
                object.__setattr__(self, name, found)

    @classmethod
    @functools.cache
    def declared(cls) -> tuple[tuple[str, About, Any], ...]:
        """Each option: its name, what's said of it, its default."""
        return tuple(
            (item.name, item.metadata[_KEY].named(item.name, cls.section), item.default)
            for item in dataclasses.fields(cls)
            if _KEY in item.metadata
        )

    @classmethod
    def default(cls, name: str) -> Any:
        """An option's default."""
        return next(default for known, _, default in cls.declared() if known == name)

    @classmethod
    def meaning(cls, name: str, *, flags: bool) -> str:
        """An option's words with its default.

        Args:
            name: Of the option.
            flags: Whether others are called as in a shell, and not as in Python.
        """
        options = {known: (about, default) for known, about, default in cls.declared()}
        about, default = options[name]

        def called(match: re.Match[str]) -> str:
            flag = options[match[1]][0].flag if match[1] in options and flags else ""
            return flag or match[0]

        said = default is not MISSING and default is not None and not isinstance(default, bool | tuple)
        usual = about.usual or (written(default) if said else "")
        words = ((flags and about.typed) or about.words).removesuffix(".")
        again = " Repeatable." if flags and about.value.many and not about.typed else ""
        return _NAME.sub(called, f"{words}{f' (default: {usual})' if usual else ''}.{again}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """What a shell's words say.

        Args:
            given: Values by name; others than the verb's aren't looked at.

        Raises:
            UsageError: for a value that can't be meant, by the option's flag.
        """
        flags = {name: about.flag for name, about, _ in cls.declared()}
        try:
            return cls(**{item.name: given[item.name] for item in dataclasses.fields(cls) if item.name in given})
        except UsageError as error:
            words = _FIRST.sub(lambda match: flags.get(match[0]) or match[0], str(error))
            raise UsageError(words) from error


def written(value: Any) -> str:
    """A default in words: 300, 1e-4, O2."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if abs(value) >= _SMALL or not value else f"{value:.0e}".replace("e-0", "e-")


def takes(options: Callable[P, Asked]) -> Callable[[Callable[[Asked], R]], Callable[P, R]]:
    """Give a function the parameters of a verb's options, typed and documented as these are.

    What its own docstring says behind the first sentence comes behind them.

    Args:
        options: The dataclass; what it's made of is what the function is called with.
    """

    def decorated(function: Callable[[Asked], R]) -> Callable[P, R]:
        signature = inspect.signature(options)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            __tracebackhide__ = True  # of pytest, which shows whoever called
            try:
                signature.bind(*args, **kwargs)  # its errors speak of arguments, and not of a class
            except TypeError as error:
                unknown = [name for name in kwargs if name not in signature.parameters]
                close = _meant_by(unknown[0], options) if unknown else ""
                raise TypeError(f"{_PACKAGE}.{function.__name__}() {error}{close}") from None
            try:
                return function(options(*args, **kwargs))
            except ConrepairError as error:
                error.args = tuple(in_python(item) if isinstance(item, str) else item for item in error.args)
                raise

        given = inspect.signature(function).return_annotation
        call.__signature__ = signature.replace(return_annotation=given)  # type: ignore[attr-defined]
        about, _, returns = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
        call.__doc__ = "\n".join([about, "", "Args:", *_documented(options), "", returns])
        return call

    return decorated


def _meant_by(word: str, options: Any) -> str:
    """What follows behind an argument that doesn't exist: the one that a shell calls so, or one that's close."""
    names = [item.name for item in dataclasses.fields(options)]
    flags = {about.flag.strip("-").replace("-", "_"): name for name, about, _ in options.declared() if about.flag}
    return f"; did you mean {flags[word]!r}?" if word in flags else meant(word, names)


def _documented(options: Any) -> Iterator[str]:
    for item in sorted(dataclasses.fields(options), key=lambda item: bool(item.kw_only)):  # models first
        words = options.meaning(item.name, flags=False) if _KEY in item.metadata else item.metadata[_WORDS]
        yield f"    {item.name}: {words}"


# Values that options of several verbs have: how each is read, from Python and from a shell.


COUNT = Value(arguments.COUNT, numbers.count, "N")
DATA = Value(arguments.anything, metavar="PATH")
FILE = Value(arguments.path, metavar="FILE")
FOLDER = Value(arguments.path, metavar="FOLDER")
NUMBER = Value(arguments.real(), numbers.real, "X")
OR_NONE = Value(arguments.whole(0), numbers.whole(0), "N")
SECONDS = Value(arguments.SECONDS, numbers.seconds, "S")
SEED = Value(arguments.SEED, numbers.seed, "N")
SHARE = Value(arguments.real(), numbers.share, "SHARE")
