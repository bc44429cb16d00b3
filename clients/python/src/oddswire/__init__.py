"""Client of the oddswire API."""
