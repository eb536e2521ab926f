"""The numbered cases of Auto Loader, one test per case, named by its id (docs/semantics/auto-loader.md)."""
