"""Decisions of localization near their edges: of these `tests/localization/test_numbers.py` makes a table."""
