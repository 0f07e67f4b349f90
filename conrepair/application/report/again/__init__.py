"""A saved run judged again, by other thresholds, as far as what was saved allows; and what is missing of it."""
