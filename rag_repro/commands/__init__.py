"""What each command does: thin wrappers over the package, which import what they need inside.

Their docstrings end the help of the command.
"""
