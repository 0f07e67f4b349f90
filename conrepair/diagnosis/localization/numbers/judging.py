"""Numbers that decide which pieces are guilty, and what answers, layers and ranges are said to be."""

STEP_ERROR = 8.0  # units in the last place that one operator may be off by: libraries approximate exp, erf, tanh
MARGIN_OF_BITS = 4.0  # times what bit widths explain, that an error may be

# Relative L2 from which on what's left of values is half noise, whatever the bit widths: a matrix of integers
# that was set to zero explained any error.
MOST_EXPLAINED = 0.7

HIDDEN = 20.0  # times the full run's error that an introduced one may be: at one place it isn't so much smaller
UNREAD = 0.01  # of an error that no reader reads: rounding is more of a small one
LEFT = 0.5  # of the outputs' error, at most, where the piece that brings it is corrected
WEIGHT = 4.0  # times the error of what's computed, at most, that of the weight that makes it may be
UNCHANGED = 1e-9  # relative, of sums of squares that are the same ones

SAME_ANSWERS = 1e-2  # relative error of answers that are the same: more than float16 rounds, or sums in another order
EXPLAINED = 0.1  # of the error as it is, at most, that other classes may leave: closer scores need no explanation

ALIKE_LAYERS = 3  # layers that are off alike by no chance
ALIKE_SHARE = 0.75  # of the layers with weights: some may be frozen, or too little off to be at fault
ALIKE = 10.0  # times the usual: what's further off than all others is at fault by itself
RULE = 2  # places that make a rule

CUT_OFF = 0.02  # share of the values that are cut off: outliers are, on purpose
BEYOND = 1.5  # times the range: samples may have somewhat larger values than those of calibration
LOST = 0.1  # relative L2 of what's cut off: less of it is no fault where its piece has none
MADE_BY_RANGE = 0.5  # of a piece's error: what's cut off is what it's wrong by
EPSILON = 1e-2  # at most, that is added for no other purpose than to divide by it
