"""Figures of a text that no known tool wrote, and what sentences say of figures."""
