"""The storage root: registry and lease, Delta tables, event log, published views."""
