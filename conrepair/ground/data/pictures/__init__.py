"""Pictures: read, drawn, prepared by recipes."""
