"""The neutral view of a network: operators, attributes and layouts in one convention."""
