"""What a cluster costs beside the jobs themselves."""
