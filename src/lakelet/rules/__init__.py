"""Rules as files: listing, checking, trying, suggesting and converting them (docs/reference/rules.md)."""
