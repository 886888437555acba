"""Parts of the documentation that are computed from the code when the site is built."""
