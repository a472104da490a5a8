"""Signing in at an OpenID Connect provider. An extra, and nothing of it is loaded unless it is configured."""
