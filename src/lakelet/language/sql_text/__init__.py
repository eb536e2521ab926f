"""SQL text: statements, words, table names, paths into JSON."""
