"""Commands for both interfaces, the command line and the page, which show results in different ways."""
