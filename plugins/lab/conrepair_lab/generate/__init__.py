"""Random valid networks: operators' specifications, growth, values, and what converters and compilers get wrong."""
