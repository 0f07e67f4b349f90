"""Tracing: inputs on which two settings of a system differ, and the kernels, passes and formulas that cause it."""
