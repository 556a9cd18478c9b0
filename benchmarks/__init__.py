"""How fast the parts are, as ratios inside one run: `python -m benchmarks.NAME [--json]`."""
