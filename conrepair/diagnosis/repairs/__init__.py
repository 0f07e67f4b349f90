"""Repair a target with the smallest change that makes it compute what its source does, in the target's own format."""
