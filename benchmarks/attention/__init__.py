"""Networks of attention, written as real exports write them, and faults in them."""
