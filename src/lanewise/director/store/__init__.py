"""The director's database: SQLAlchemy tables, Alembic migrations, one transaction a change."""
