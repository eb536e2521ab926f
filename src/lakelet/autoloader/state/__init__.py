"""State of a source: the ledger of planned files, archived files, clean-up of the source."""
