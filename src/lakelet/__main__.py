"""`python -m lakelet`: the command line."""

from lakelet.cli.main import entry

entry()
