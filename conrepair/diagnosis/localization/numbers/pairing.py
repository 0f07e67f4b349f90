"""Numbers that decide which tensors of two networks stand for the same value."""

# Relative L2 below which two tensors are the same one, computed by two libraries: rounding is far below it, and two
# tensors of a network are far above.
EQUAL = 1e-3
CLOSEST = 30.0  # times the error to the closest tensor, beyond which another one isn't the same

# Relative L2 below which it's chance which of two tensors is closer, and which is nothing behind what forgives it.
ROUNDING = 1e-6

DIGITS = 7.0  # decimal digits that two computations of one thing have in common at most: float32's
PLACE = 0.25  # share of all digits that it counts to lie at the other end of the network
BY_VALUES = 10  # layouts that a shape suggests, which one that values show counts as much as
CORRELATED = 0.9  # correlation from which on values tell a layout behind a fault, and weights of layers are the same

RADIUS = 10.0  # times the error that is looked for: projections of two points may be further apart than they are
ORDER = 2.0  # penalty for a distance in depth, in times the error over the whole network: breaks ties

HARMLESS = 1e-4  # of a tensor's error that what's computed from it has left: no layer forgives that much
TAKEN_BACK = 1e-2  # of an end's error that may be left without what lies before it
FORGIVEN = 1.5  # times what's left with a tensor fed, without it, where that's rounding of fewer bits
NEARER = 16.0  # times nearer than what was guessed another tensor is by no accident
BOTH = 4.0  # times nearer, that it and what reads it come
NO_WORSE = 1.05  # times its error before, that what reads a tensor may have where it's taken for another one
