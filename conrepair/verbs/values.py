"""Values that options of several verbs have: how each is read, from Python and from a shell."""

from __future__ import annotations

from conrepair.intake import arguments
from conrepair.verbs import numbers
from conrepair.verbs.option import Value

COUNT = Value(arguments.COUNT, numbers.count, "N")
DATA = Value(arguments.anything, metavar="PATH")
FILE = Value(arguments.path, metavar="FILE")
FOLDER = Value(arguments.path, metavar="FOLDER")
NUMBER = Value(arguments.real(), numbers.real, "X")
OR_NONE = Value(arguments.whole(0), numbers.whole(0), "N")
SECONDS = Value(arguments.SECONDS, numbers.seconds, "S")
SEED = Value(arguments.SEED, numbers.seed, "N")
SHARE = Value(arguments.real(), numbers.share, "SHARE")
