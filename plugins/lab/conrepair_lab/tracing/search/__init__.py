"""Points at which two settings of a system differ most: what is varied, how it is searched, what is scored."""
