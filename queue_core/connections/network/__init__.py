"""Connections over a network: what all wires share. See `sending` for one call, `adapter` for many at once."""
