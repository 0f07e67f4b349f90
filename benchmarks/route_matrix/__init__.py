"""Each format converted into each other one, and what fails: measured on the models of a configuration."""
