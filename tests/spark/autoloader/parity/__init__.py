"""Auto Loader beside Spark's own readers: the same small files, options and session settings, read by both and compared."""
