"""Tools for a checkout: `init`, `doctor`, types for editors."""
