"""Numbers that decide whether a difference is explained, with their units.

Those of arithmetics were chosen by pieces of 20 right devices of `benchmarks.arithmetics` (development): a piece's
error was the simulation's in the middle, 1.75 times that at most, and 2.6 times once.
"""

SIMULATED = 1e10  # products times bytes of all arithmetics and batches that are simulated: about a second
BATCHES = 8  # that are simulated at most: more samples say no more of an arithmetic
STEP = 2e6  # the same of each operator at least, whatever its size is
WORK = 1e9  # products times bytes of a result that are computed exactly: about a second of one processor
OTHERS = 3.0  # times the error of the first batch, at most, that all have which one batch acquits
BOUNDS = 100.0  # of rounding, all of them proven, that no kernel's accuracy takes an element beyond
TIMES = 2.0  # an arithmetic's own error, that a difference may be: what's rounded elsewhere has as much of its own
LEAST = 0.3  # of an arithmetic's own error that outputs' difference is at least: it's no seven times finer one's
OF_FUNCTIONS = 8.0  # units of a narrow type that a runtime's own functions may be off by: QNN's softmax is by three
USUAL = 0.2  # of the change in the middle of those that an arithmetic makes: one wrong channel leaves most alone
CLOSE = 0.5  # of a difference, that's left of it beside a simulation that's recognised by its numbers
SLICES = 8.0  # the same of a slice: few numbers vary more
KNOWN = 4.0  # relative L2 that its very numbers may differ by
LARGEST = 0.5  # relative L2 that no arithmetic excuses, but for its very numbers
ALONE = 0.3  # of a difference, that may be left beside a simulation of one layer among others that are in float32
MOST = 0.5  # of the pieces that float32 doesn't explain, at least, that an arithmetic explains which is recognised

# Of outputs, their slices, and integers; docs/verdicts.md has what was measured.
LARGEST_NOISE = 0.1  # relative L2 that no rounding excuses, however badly conditioned the source is
AS_BAD = 2.0  # times: two results that are each as far from the exact one differ by no more; norms, too
FLIPPED = 0.01  # of the elements, that may lie between two numbers of a type, and become either
SMALLEST = 2.0**-126  # what float32 doesn't hold in full; many kernels put 0 in its place
OF_A_STEP = 1e-3  # that a step may be exceeded by, as steps are float32
EIGHT_BITS = 2.0**-7  # relative L2 that rounding to eight bits for both signs costs an operator
KERNELS = 3.0  # times two sets of a source's own integer kernels' difference, that a conversion's may have
REAL_ARITHMETIC = 1e-5  # relative L2 of other kernels that don't round to integers
NO_NUMBERS = 0.5  # of an output's values, from which on nothing can be told from the others
HIDES = 2.0  # times the relative error of all values that a slice's is, from which on it's told
TOLD = 1e-3  # relative L2 of a slice, from which on it's looked at: four of float32's digits are lost
UNIT = 2.0**-23  # what libraries compute functions to whose largest value is 1, in the tails of a sigmoid, too
ALIKE = 8.0  # times its norm: slices up to which one has the floor of
FEW = 4.0  # a deviation that was measured of so many numbers may be twice as large
LOOKED_AT = 64  # slices of an axis, the wrongest
ROWS = 16  # samples that are looked at where nothing was measured: whether that should be done
FAR = 64.0  # times the size of slices that a grid is too coarse for: the largest's
APART = 4.0  # the same of the next ones'
SHARE = 1 / 16  # of an axis' slices: fewer may be dead channels among many of one sort
SAME_RUN = 1e-5  # of an output that's computed twice, in other batches
SHARP = 1e-4  # relative L2 of bounds that prove something where no tolerance is given: what's equivalent by default

# Of measurements of rounding.
UNCHECKED = 100.0  # times the estimate; a larger measurement is believed only if another one confirms it
LARGEST_OF_KERNELS = 1e-3  # relative L2 of other kernels: those that differ by more are in doubt themselves
AGREE = 30.0  # factor between two measurements of one floor: they disturb numbers at different places
DISTURBANCE = 2.0**-20  # relative change by which conditioning is measured: eight units in the last place of float32
ROUNDED = 0.25  # of that, which is two units in the last place: what a sum of many products is off by
STEPS = 64  # groups of tensors that are disturbed one behind the other
