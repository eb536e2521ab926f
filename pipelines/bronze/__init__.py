"""As it arrived."""
