"""The columns of a source: stored, declared, hinted, inferred, and how they grow."""
