"""The answer to an update with nothing to do, without Java: what an update read, and whether all of it is as it was (IF-3 to IF-10)."""
