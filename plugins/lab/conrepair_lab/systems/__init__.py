"""Systems: a backend, or converters and a backend, that can be told what to leave out; one file a system."""
