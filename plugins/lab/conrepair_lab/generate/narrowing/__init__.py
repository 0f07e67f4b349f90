"""The operators and settings that a converter, runtime or compiler supports, found by models of one operator."""
