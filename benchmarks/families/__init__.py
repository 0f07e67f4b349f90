"""Networks of the families that people convert, with faults that no editor of ours put in."""
