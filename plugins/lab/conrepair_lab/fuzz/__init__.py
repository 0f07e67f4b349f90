"""Fuzzing: run a case in a system, judge the outputs, and make a finding of a fault."""
