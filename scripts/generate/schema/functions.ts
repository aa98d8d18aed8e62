import type { ClientBase } from 'pg';
import { OWNER } from './tables.ts';
import { flat, heading, wrapped } from './text.ts';

type Domain = Readonly<{ definition: string; comment: string }>;
type Function = Readonly<{ signature: string; facts: string }>;

const DOMAINS = `
  select coalesce(obj_description(t.oid, 'pg_type'), '') as comment,
    concat_ws(' ', format('CREATE DOMAIN app.%I AS %s', t.typname, format_type(t.typbasetype, t.typtypmod)),
      case when t.typnotnull then 'NOT NULL' end, 'DEFAULT ' || t.typdefault,
      (select string_agg(concat_ws(' ', case when k.conname <> t.typname || '_check' then format('CONSTRAINT %I', k.conname) end,
         pg_get_constraintdef(k.oid)), ' ' order by k.conname)
       from pg_constraint k where k.contypid = t.oid and k.contype = 'c')) as definition
  from pg_type t where t.typnamespace = 'app'::regnamespace and t.typtype = 'd' order by t.typname collate "C"`;

const FUNCTIONS = `
  select format('app.%I(%s) returns %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
      as signature,
    concat_ws(', ', l.lanname,
      case p.provolatile when 'i' then 'immutable' when 's' then 'stable' end,
      case when p.proisstrict then 'strict' end,
      case p.proparallel when 's' then 'parallel safe' end,
      case when p.prosecdef then 'security definer' end,
      case when p.procost <> 100 then 'cost ' || p.procost end,
      (select string_agg('set ' || s, ', ' order by s) from unnest(p.proconfig) s
       where s <> 'search_path=pg_catalog, pg_temp'),
      case when not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'] then 'no search path' end,
      'owner ' || ${OWNER('p.proowner')},
      'executed by ' || (
        select string_agg(case a.grantee when 0 then 'public' else a.grantee::regrole::text end, ', '
          order by a.grantee::regrole::text)
        from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee <> p.proowner)) as facts
  from pg_proc p join pg_language l on l.oid = p.prolang
  where p.pronamespace = 'app'::regnamespace order by p.proname collate "C"`;

export async function describeDomains(client: ClientBase): Promise<string> {
  const { rows } = await client.query<Domain>(DOMAINS);
  return [
    heading('domains'),
    ...rows.map(
      ({ definition, comment }) => `${comment === '' ? '' : `-- ${comment}\n`}${wrapped(`${flat(definition)};`)}`,
    ),
  ].join('\n');
}

export async function describeFunctions(client: ClientBase): Promise<string> {
  const { rows } = await client.query<Function>(FUNCTIONS);
  return [
    heading('functions'),
    ...rows.map(({ signature, facts }) => `${wrapped(flat(signature), '    ')}\n  -- ${facts}`),
  ].join('\n');
}
