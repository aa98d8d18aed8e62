-- Publishes the built-in catalog when none is published. Two processes that start at once publish the same one once.
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
