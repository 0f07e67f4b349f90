"""The same said in other operators, for converters that stop at the ones a model has; one file each."""
