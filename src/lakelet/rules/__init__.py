"""The commands of `lakelet rules`: listing, checking, trying, suggesting and converting rules and checks (docs/reference/rules.md)."""
