"""Decisions of localization near their edges: of these `tests_real/localization/test_numbers.py` makes a table."""
