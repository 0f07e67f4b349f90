"""Numbers that decide whether a difference is explained, with their units.

Those of arithmetics were chosen by pieces of 20 right devices of `benchmarks.arithmetics` (development): a piece's
error was the simulation's in the middle, 1.75 times that at most, and 2.6 times once.
"""

WORK = 1e9  # products times bytes of a result that are computed exactly: about a second of one processor
OTHERS = 3.0  # times the error of the first batch, at most, that all have which one batch acquits
BOUNDS = 100.0  # of rounding, all of them proven, that no kernel's accuracy takes an element beyond
TIMES = 2.0  # an arithmetic's own error, that a difference may be: what's rounded elsewhere has as much of its own
LEAST = 0.3  # of an arithmetic's own error that outputs' difference is at least: it's no seven times finer one's
USUAL = 0.2  # of the change in the middle of those that an arithmetic makes: one wrong channel leaves most alone
CLOSE = 0.5  # of a difference, that's left of it beside a simulation that's recognised by its numbers
SLICES = 8.0  # the same of a slice: few numbers vary more
KNOWN = 4.0  # relative L2 that its very numbers may differ by
LARGEST = 0.5  # relative L2 that no arithmetic excuses, but for its very numbers
ALONE = 0.3  # of a difference, that may be left beside a simulation of one layer among others that are in float32
MOST = 0.5  # of the pieces that float32 doesn't explain, at least, that an arithmetic explains which is recognised
UNCHECKED = 100.0  # times the estimate; a larger measurement is believed only if another one confirms it
LARGEST_OF_KERNELS = 1e-3  # relative L2 of other kernels: those that differ by more are in doubt themselves
AGREE = 30.0  # factor between two measurements of one floor: they disturb numbers at different places
DISTURBANCE = 2.0**-20  # relative change by which conditioning is measured: eight units in the last place of float32
ROUNDED = 0.25  # of that, which is two units in the last place: what a sum of many products is off by
STEPS = 64  # groups of tensors that are disturbed one behind the other
