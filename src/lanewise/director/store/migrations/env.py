"""Alembic runs this to migrate over the connection it is given (`director.store.connection`)."""

from alembic import context

from lanewise.director.store.tables import metadata

# SQLite's DDL is transactional too, as the connection begins transactions itself: a migration is there whole or not.
context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
