"""Alembic's migrations of the director's database: `env.py` runs them, `versions` holds them."""
