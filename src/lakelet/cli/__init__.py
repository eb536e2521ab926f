"""The command line: arguments → facade → text. The only place that prints."""
