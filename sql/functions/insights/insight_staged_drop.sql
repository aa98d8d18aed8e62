-- Drops what is staged of a source, for a round of a mode that begins anew or is done: what a tail stages is a snapshot, and a source with
-- rescans has staged what one of them has seen, which its tail leaves alone. The caller has locked the source.
create or replace function app.insight_staged_drop(p_organization_id uuid, p_source_id uuid, p_mode text)
  returns void
  language sql
as $$
  update app.insight_segments set staged = false, retired_at = clock_timestamp()
    where organization_id = p_organization_id and source_id = p_source_id and staged
      and (p_mode = 'rescan' or not exists (
        select from app.insight_cursors c
          where c.organization_id = p_organization_id and c.source_id = p_source_id and c.mode = 'rescan'))
$$;
