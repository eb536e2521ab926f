"""Updates with nothing to do, without Java: records what an update depends on, and compares it before the next one (IF-3 to IF-10)."""
