"""The HTTP API, `/api/v1/`: tickets in, decisions out, by keys. Described to machines by its own OpenAPI document."""
