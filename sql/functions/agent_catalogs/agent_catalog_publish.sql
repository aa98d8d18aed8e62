-- Publishes a template catalog under its revision, the SHA-256 of its canonical JSON, and makes it the current one. A catalog
-- that is already published keeps its place. Returns {revision, published}.
create or replace function app.agent_catalog_publish(p_revision text, p_catalog jsonb)
  returns jsonb
  language plpgsql security definer
as $$
begin
  insert into app.agent_catalogs (revision, catalog) values (p_revision, p_catalog)
    on conflict (revision) do nothing;
  return jsonb_build_object('revision', p_revision, 'published', found);
end
$$;
