"""Which method of searching finds planted numeric defects, at equal budgets."""
