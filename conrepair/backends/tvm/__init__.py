"""Apache TVM: import, optimization settings, compilation, execution. TVM itself is imported in workers only."""
