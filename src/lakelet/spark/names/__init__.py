"""Name resolution: what a dataset function reads by name, path or SQL."""
