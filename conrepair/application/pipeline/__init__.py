"""The stages of a configured run: build, convert, execute, evaluate, report."""
