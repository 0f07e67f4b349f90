"""What a person sees of a command on its way."""
