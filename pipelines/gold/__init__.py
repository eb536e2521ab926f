"""Answers to questions."""
