"""Finding files: listings, patterns, partition folders, local and remote file systems."""
