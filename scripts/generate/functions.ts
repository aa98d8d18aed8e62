import type pg from 'pg';

/** Not granted to any login: scripts call them with the rights of an operator. */
const OF_OPERATORS = [
  'analyst_grant',
  'analyst_revoke',
  'analysts_list',
  'integration_secret_rewrap',
  'integration_secrets_by_key',
  'integration_secrets_to_rewrap',
];

/** Parts of policies and defaults, which logins may execute and no call needs. */
const OF_SQL = ['current_organization', 'uuid_v7'];

type Argument = Readonly<{ name: string; type: string; optional: boolean }>;
type Row = Readonly<{ name: string; returns_set: boolean; args: readonly Argument[] }>;

/** Each function with its input arguments; a type that is a domain is the one that lies under it. */
const CALLABLE = `
  with recursive base (oid, base) as (
    select oid, oid from pg_type
    union all
    select b.oid, t.typbasetype from base b join pg_type t on t.oid = b.base and t.typtype = 'd'
  ), named (oid, name) as (
    select b.oid, coalesce(m.typname || '[]', t.typname)
    from base b
    join pg_type t on t.oid = b.base and t.typtype <> 'd'
    left join base e on e.oid = t.typelem and t.typcategory = 'A'
    left join pg_type m on m.oid = e.base
    where m.oid is null or m.typtype <> 'd'
  )
  select p.proname as name, p.proretset as returns_set, coalesce(a.args, '[]') as args
  from pg_proc p
  left join lateral (
    select jsonb_agg(jsonb_build_object(
        'name', u.name, 'type', n.name, 'optional', u.place > p.pronargs - p.pronargdefaults) order by u.place) as args
    from unnest(p.proargtypes::oid[], p.proargnames[1:p.pronargs]) with ordinality u(type, name, place)
    join named n on n.oid = u.type
  ) a on true
  where p.pronamespace = 'app'::regnamespace and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype
    and p.proname <> all ($2)
    and (p.proname = any ($1) or has_function_privilege('runner_api', p.oid, 'execute')
      or has_function_privilege('runner_jobs', p.oid, 'execute')
      or has_function_privilege('runner_admin', p.oid, 'execute'))
  order by p.proname collate "C"`;

const HEAD = `// Made by "npm run generate" from the catalog of a migrated database; a test fails when they differ.
import type { Signature } from '../sql_types.ts';

/** The functions that logins and operators call. */
export const functions = {
`;
const TAIL = `} as const satisfies Readonly<Record<string, Signature>>;
`;
const LINE_WIDTH = 120;

/** `p_organization_id` → `organizationId`. @throws Error for a name from which the way back would lead elsewhere */
function keyOf(fn: string, name: string): string {
  if (!/^p(_[a-z][a-z0-9]*)+$/.test(name))
    throw new Error(`app.${fn}: the argument ${name} has no name for TypeScript`);
  return name.slice(2).replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** As the formatter writes it. */
function group(title: string, fn: string, args: readonly Argument[]): string {
  const entries = args.map(({ name, type }) => `${keyOf(fn, name)}: '${type}'`);
  const line = `    ${title}: {${entries.length > 0 ? ` ${entries.join(', ')} ` : ''}},`;
  if (line.length <= LINE_WIDTH) return `${line}\n`;
  return `    ${title}: {\n${entries.map((entry) => `      ${entry},\n`).join('')}    },\n`;
}

function signature({ name, returns_set: returnsSet, args }: Row): string {
  const optional = args.filter((argument) => argument.optional);
  return [
    `  ${name}: {\n`,
    group(
      'required',
      name,
      args.filter((argument) => !argument.optional),
    ),
    optional.length > 0 ? group('optional', name, optional) : '',
    returnsSet ? '    returnsSet: true,\n' : '',
    '  },\n',
  ].join('');
}

/** The text of engine/db/generated/functions.ts for a migrated database. */
export async function functionsFile(db: Pick<pg.Pool, 'query'>): Promise<string> {
  const { rows } = await db.query<Row>(CALLABLE, [OF_OPERATORS, OF_SQL]);
  const names = rows.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`app.${twice} has two signatures: a call could mean either`);
  const missing = OF_OPERATORS.find((name) => !names.includes(name));
  if (missing !== undefined) throw new Error(`app.${missing} is not there`);
  return HEAD + rows.map(signature).join('') + TAIL;
}
