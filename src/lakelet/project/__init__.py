"""Tools for a checkout: `init`, `doctor`, sample data."""
