"""Function-calling accuracy: cases, checking, aggregation and references. Stands alone."""
