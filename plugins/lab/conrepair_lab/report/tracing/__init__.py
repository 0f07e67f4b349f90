"""What a trace came to, as text, a picture and files."""
