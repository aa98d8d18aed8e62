-- What to evaluate before a result is committed: {digest, criteria, outputs}, with the criteria of the task and the stored
-- files that the result names ({path, size, sha256, mediaType, storageKey}, as run_artifacts returns them).
-- The digest identifies exactly these criteria and bytes, so that the commit takes only checks of them.
create or replace function app.run_evaluation_request(p_criteria jsonb, p_outputs jsonb)
  returns jsonb
  language plpgsql immutable
as $$
begin
  return jsonb_build_object('criteria', p_criteria, 'outputs', p_outputs,
    'digest', encode(sha256(convert_to(p_criteria::text || p_outputs::text, 'UTF8')), 'hex'));
end
$$;
