"""What a checkout needs: `init`, `doctor`, sample data."""
