"""JSON lines and documents."""
