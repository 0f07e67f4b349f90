"""report.html: one page that a person reads, made of the result alone."""
