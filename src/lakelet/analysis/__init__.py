"""Analysis of the declarations: placeholder relations, kinds, schemas, checks, facts read from plans."""
