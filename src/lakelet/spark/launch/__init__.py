"""Starting Spark: Java, jars, the session, and its Python processes."""
