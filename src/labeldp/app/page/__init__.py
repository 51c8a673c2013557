"""The page: the whole job in a browser, on one's own machine. Every step calls what the command line calls."""
