"""What is wrong between two cuts: operators, attributes, parameters, wiring, and what the values say."""
