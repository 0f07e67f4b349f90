"""What a model's file holds that would run, or reach beyond the model, read without loading it."""
