"""What can be asked of models: each verb's options, for Python and for the shell."""
