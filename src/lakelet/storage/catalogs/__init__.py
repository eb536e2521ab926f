"""Tables that others find by name: what a storage publishes, and the catalogs that it is registered in."""
