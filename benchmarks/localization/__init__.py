"""How well localization names faults, and that it doesn't name any where there are none."""
