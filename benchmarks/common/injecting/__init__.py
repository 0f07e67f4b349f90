"""Faults put in by the frameworks themselves, or by an exporter made wrong on purpose, without repair's editors."""
