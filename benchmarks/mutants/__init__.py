"""How many wrong lines the quick tests notice, of those that bear a verdict."""
