-- A slug that is not in use: p_base, or p_base with the lowest free number, or with random digits. Reads all tenants, and
-- reserves nothing: if the slug is taken in between, the caller asks again. Codes: none.
create or replace function app.organization_slug_free(p_base text)
  returns text
  language plpgsql security definer
as $$
declare
  v_slug text := p_base;
begin
  for v_number in 2 .. 1000 loop
    if not exists (select 1 from app.organizations where slug = v_slug and deleted_at is null) then
      return v_slug;
    end if;
    v_slug := rtrim(left(p_base, 58), '-') || '-' || v_number;
  end loop;
  return rtrim(left(p_base, 48), '-') || '-' || right(replace(gen_random_uuid()::text, '-', ''), 12);
end
$$;
