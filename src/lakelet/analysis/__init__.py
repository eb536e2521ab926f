"""What the declarations mean: placeholder relations, kinds, schemas, checks, facts read from plans."""
