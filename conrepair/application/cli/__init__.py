"""The command line. Verbs import what they need when they run, so that --help answers at once."""

from conrepair.application.cli.main import main

__all__ = ["main"]
