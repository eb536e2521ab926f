"""One typed table per event type."""
