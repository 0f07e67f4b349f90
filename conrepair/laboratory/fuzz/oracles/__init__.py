"""What is wrong with a trial: of its runs, the form of its answers, their numbers, and its gradients."""
