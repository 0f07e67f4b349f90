"""What a converter, runtime or compiler takes at all, found by models of one operator."""
