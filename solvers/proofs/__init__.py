"""Certificates, and the verifier that needs no solver."""
