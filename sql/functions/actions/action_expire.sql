-- Action awaiting_approval → expired; its item in the inbox → cancelled. The caller has locked root and action, and looked at the
-- time. Returns the refusal of the decision that came too late.
create or replace function app.action_expire(a app.actions)
  returns jsonb
  language plpgsql
as $$
begin
  update app.actions
    set status = 'expired', version = version + 1, updated_at = clock_timestamp(),
      reason = '{"code": "not_decided", "message": "Nobody decided about it in time"}'
    where organization_id = a.organization_id and id = a.id
    returning * into a;
  perform app.action_end(a, 'cancelled');
  return app.problem(409, 'state_conflict', 'The action has expired', app.issue('actionId', 'expired', 'propose it again'));
end
$$;
