-- Processes compare the database's version with their own before they say that they are ready.
grant select on app.schema_migrations to runner_api, runner_jobs, runner_admin;
