"""One update: tasks, executor, retries, continuous rounds, recovery, resets, and the events it emits."""
