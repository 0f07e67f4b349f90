"""Files that hold code, disguised in all ways that readers of them disagree about: none of it may run."""
