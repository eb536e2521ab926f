"""The conformance cases of spec/autoloader.md section 9: one test per case, named by its id."""
