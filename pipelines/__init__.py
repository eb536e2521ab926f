"""The pipeline of system A: bronze, silver, gold (contract: docs/system-a.md)."""
