"""The configuration: typed, with defaults, refused with a reason where it is wrong."""
