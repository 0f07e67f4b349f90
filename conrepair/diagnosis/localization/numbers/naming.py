"""Numbers that decide what is said to be wrong with a guilty piece."""

SINGLE = 1e-6  # relative: what single precision leaves of a number
SAME = 1e-5  # relative L2 of numbers that are the same: folding and other arithmetic leave less
SCALED = 1e-4  # the same behind a factor or an offset
ALMOST = 1e-3  # relative L2 of results and of folded weights that counts as explained
ONE = 5e-4  # from which on a factor is told from 1 in three digits
CERTAIN = 4.0  # times what rounding does, that a change is more than
FEW = 3  # places whose reverse order is one that chance gives
LIKE = 0.5  # relative L2 of numbers that belong together, or of the same ones in few levels, at most
LIKER = 4.0  # times nearer than any other numbers
UNLIKE = 1.0  # relative L2 from which on two arrays just aren't the same parameter
CLOSE = 1e-4  # relative L2 to what a framework has computed in float32, up to which two results are the same
LEFT = 0.01  # of an error is left at most by what explains it
MUCH_LEFT = 0.25  # of an error is left at most by what explains it, where weights have few bits

FEW_LEVELS = 256  # different numbers: more aren't rounded to levels
MANY = 16  # numbers that aren't in a narrower type by chance
NARROW_NUMBERS = {"bfloat16": (2.0**-7, 1e-30), "float16": (2.0**-10, 2.0**-24)}  # rounding: relative, and at least
NARROW_RESULTS = {"bfloat16": 0.05, "float16": 0.01}  # relative L2 that storing a result in it may leave
OFF_GRID = 2e-3  # of a step, that a value may be off its grid: what single precision makes of a product with a scale
SEVERAL = 8  # values of a slice: fewer lie on some grid, or have some scale, by chance

BORDER = 0.9  # share of a difference that makes it the border's
JUMPS = 0.6  # share of neighbours on the dense part of a grid; a smooth function changes at each
ALIKE = 0.5  # cosine from which on numbers belong together, of many
SURELY = 0.95  # the same, of however few
DEVIATIONS = 4.0  # of the cosine of so many numbers that have nothing to do with one another
MASKING = -1e4  # what's this low, added to scores or put in their place, takes part in nothing
MASKED = 4  # places of a mask: of fewer, two values are none

GAP = 1.0  # for a step that only one side has
MOVE_GAP = 0.1  # for one that only moves values
OTHER = 1.9  # for a step that is something else at the same place
REPLACED = 1.5  # for one that is another of its family; less than two gaps
PIECES = 3  # operators that the target has for one
TURNS = 3  # turns of a loop that agree
MAJORITY = 2 / 3  # of the turns have what's usual
RARE = 3  # times as often what's usual occurs, at least: the first turns and the last ones lack parts

# Weights of differences, 0 to 1: how surely they're what's wrong.
SOLE = 0.9  # of one that no other difference explains
ALONG = 0.98  # of another axis: which one it should be is told by layouts nearby
UNSAID = 0.6  # of what only one side says: it may be what the other takes for it
ALONE = 0.9  # of what only one side has
ALONE_JOINING = 0.95  # the same of what joins branches, which tells more
WRITTEN = 0.15  # of what conversions write otherwise
CONVERTED = 0.2  # below which a difference is one that conversions make all the time
