"""Networks in a canonical form, in which the same computation is the same value, whoever wrote it and how."""
