"""The dataset graph, selection, and what an update will do and why. Pure; knows no Spark."""
