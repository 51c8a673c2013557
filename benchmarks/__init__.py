"""Speed and memory, measured beside other libraries."""
