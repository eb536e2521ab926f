"""The command line: arguments → facade → text. The only room that prints."""
