-- What an integration may be asked for, as far as its settings say: SHA-256, in hex.
create or replace function app.insight_scope(i app.integrations)
  returns text
  language sql immutable
as $$
  select encode(sha256(convert_to(coalesce(i.settings::text, ''), 'UTF8')), 'hex')
$$;
