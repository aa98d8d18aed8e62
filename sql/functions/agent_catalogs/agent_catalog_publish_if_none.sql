-- Publishes the built-in catalog if none is published. Two processes that start at the same time publish the same one, once.
-- Returns {revision, published}.
create or replace function app.agent_catalog_publish_if_none(p_revision text, p_catalog jsonb)
  returns jsonb
  language plpgsql security definer
as $$
begin
  insert into app.agent_catalogs (revision, catalog)
    select p_revision, p_catalog where not exists (select 1 from app.agent_catalogs)
    on conflict (revision) do nothing;
  return jsonb_build_object('revision', p_revision, 'published', found);
end
$$;
