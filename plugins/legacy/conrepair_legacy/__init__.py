"""The configuration of ConRepAIr/FetaFix, our predecessor: read as it is, with an account of every key."""
