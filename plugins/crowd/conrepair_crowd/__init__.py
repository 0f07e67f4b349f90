"""Jobs on many machines: by their names, with their files by hash, on a Dask cluster."""
