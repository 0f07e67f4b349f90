"""Decisions of localization near their edges, of which `tests_real/diagnosis/localization/numbers.txt` is a table."""
