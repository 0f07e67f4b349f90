"""The operators that are measured, as data: one file a family."""
