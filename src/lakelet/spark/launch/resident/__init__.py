"""The resident session: a command takes the Java process of a `lakelet watch` of the same user, folder and environment (decision 49).

The command stays a process of its own: its interpreter, files, terminal and signals are what they are without. Only Java is not started.
"""
