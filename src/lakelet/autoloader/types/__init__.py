"""Values and types: timestamps, date patterns, growth of schemas."""
