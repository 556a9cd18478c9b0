"""Statistics of their own: scores or frames in, plain values out, without HTML or captions."""
