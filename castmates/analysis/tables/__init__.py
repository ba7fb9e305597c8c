"""Tables that are declared beside their estimates, one table in a module.

Jobs that only read the columns import these modules: everything heavy is imported inside the functions.
"""
