"""The command line: arguments → facade → text. Layer 7, the only place that prints."""
