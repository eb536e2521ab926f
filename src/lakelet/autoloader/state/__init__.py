"""What a source remembers: the ledger of planned files, archived files, clean-up of the source."""
