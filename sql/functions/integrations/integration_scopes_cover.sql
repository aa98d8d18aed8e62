-- Whether what a provider granted covers what a tool requires: one of the scopes is enough, as a wider one covers a narrower one. A
-- tool that requires none goes with any connection. p_granted null: the provider tells none, and so refuses none.
create or replace function app.integration_scopes_cover(p_granted jsonb, p_required jsonb)
  returns boolean
  language sql immutable
as $$
  select p_granted is null or p_required = '[]'
    or exists (select from jsonb_array_elements_text(p_required) s where p_granted ? s)
$$;
