"""Photos: reading folders of them, decoding them, and turning them into what a model takes."""
