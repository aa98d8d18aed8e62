-- Deletes a source that no document cites; called by the onboarding's transitions. Returns its storage key, whose bytes the
-- caller deletes after the commit, or null if there is no such source.
-- Locks: source. Codes: 409 state_conflict (a document cites it).
create or replace function app.context_source_delete(p_organization_id uuid, p_source_id uuid)
  returns text
  language plpgsql
as $$
declare
  s app.context_sources;
begin
  select * into s from app.context_sources
    where organization_id = p_organization_id and id = p_source_id for update;
  if not found then
    return null;
  end if;
  if exists (select 1 from app.context_documents
             where organization_id = p_organization_id and source_ids ? p_source_id::text) then
    perform app.fail(409, 'state_conflict', 'Documents of the context cite this source');
  end if;
  delete from app.context_sources where organization_id = p_organization_id and id = p_source_id;
  return s.storage_key;
end
$$;
