"""Files: read safely, written whole, kept, and removed where they're ours."""
