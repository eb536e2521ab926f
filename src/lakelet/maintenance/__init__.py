"""`lakelet maintain`: fewer, larger files in the stored tables, and none that nobody needs."""
