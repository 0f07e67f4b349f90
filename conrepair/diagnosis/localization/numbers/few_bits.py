"""Numbers that decide what few bits explain, and which tensors of a network in few bits are pairs."""

SAME_STEP = 2e-3  # relative, of steps that are the same: folding leaves less, and more loses a step of eight bits
TWICE = 2.0  # times the error that its bits explain is no rounding of the right weight

# Times the samples' largest values that calibration may have met. Measured: MobileNetV2, calibrated on ten photos,
# has a sum with a scale for 13 times the largest of eight others.
RARE = 32.0
# Times the largest value of a range that the samples may have: calibration has seen other samples. Inputs that are
# drawn at random make a network give values that its calibration on photos can't know, most of its tensors alike.
BEYOND = 1.25
BEYOND_DRAWN = 2.0  # the same, of drawn inputs
MOST_DRAWN = 8.0  # the same, however far most tensors are beyond
SEVERAL = 4  # tensors, of which most say how far values of drawn inputs are beyond what calibration met

WIDE = 8.0  # times the values that a range holds: three bits are unused
GAIN = 2.0  # times by which rounding errors would become smaller

OTHER_UNITS = 0.9  # relative L2 beyond which values of a quantized network are in another unit: whole numbers
NEAR = 0.1  # relative L2 that a quantized network's activations may differ by, at least
NEARER = 4.0  # times that of its outputs, if that's more
STORED_NEAR = (0.03, 0.1)  # relative L2 by which layers with activations in few bits are off, together and at most
WEIGHTS_NEAR = (0.01, 0.02)  # the same where weights alone are in few bits
STORED = 0.25  # of a network's tensors are in few bits where activations are meant to be
# Times what the bits of a weight explain. Measured: 0.005 to 0.007 for eight, for which the bounds above are, and
# 0.12 to 0.24 for four.
TIMES_ROUNDING = (1.5, 3.0)
FEW_BITS = 4  # bits, of which the bounds above know nothing
CLOSER = 1.5  # times the error to the nearest tensor, from which on that's the one, where nothing else tells
RIVAL = 2.0  # times the error to the nearest tensor, which is the one that's meant
