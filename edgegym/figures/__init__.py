"""The framework paper's figures, one module each, from this library's own numbers."""
