-- What a decision about an action is about, for its entry in the audit log: {seen: {version, argumentsSha256}}, a part of what the
-- transition returns.
create or replace function app.action_seen(a app.actions)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object('seen', jsonb_build_object('version', a.version, 'argumentsSha256', a.arguments_sha256))
$$;
