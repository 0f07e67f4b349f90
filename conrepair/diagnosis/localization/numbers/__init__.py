"""Numbers that decide, one file a stage: each with its unit, what it decides, and what it was measured on.

They're read as attributes of these modules (`judging.STEP_ERROR`), so that each can be changed in one place. What is
decided otherwise at half and at twice of each is in `tests_real/diagnosis/localization/numbers.txt`. Numbers that
only bound work or text stand where they're used. Where nothing else is said, a number is chosen, not measured.
"""
