"""Numbers that decide whether a target is fed with what its source is, and by which recipe."""

ROUNDING = 1e-6  # relative error, and share of a spread, that single precision may always make of an input
STORED = {"float16": 2.0**-9, "bfloat16": 2.0**-6}  # the same where an input is stored so
SAME = 1e-3  # numbers this close, as a share of the target's spread, are one
EXPLAINED = 1e-2  # of an error that an explanation may leave: pictures of 8 bits are rounded
CLEAR = 3.0  # times what the best explanation leaves, another one must leave to be clearly worse
PICTURE = 0.5  # correlation of two pictures that are the same one

BETTER = 10.0  # times smaller an error must be by the source's input to make the target's own wrong
MAYBE = 0.5  # of the error may be left where the layers behind are wrong either way

EXACT = 1e-4  # relative error that can't get better, however much rounding is allowed for
CLEAR_ERROR = 0.25  # relative error above which the best recipe is no explanation, however bad the others are
FAR = 1.0  # relative error behind which no number leads to the right ones
