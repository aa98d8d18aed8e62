import t from 'tap';
import { camelCase, shownTables } from '../../../api/admin/schema/catalog.ts';
import { adminClient } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTenant } from '../../support/tenant.ts';

const app = await startTestApp(t);
const own = await createTenant(sqlOf(app));
const admin = adminClient(app);
const scoped = adminClient(app, own.organizationId);

type Named = Readonly<{ name: string }>;
type Field = Named & Readonly<{ args: (Named & { type: Named })[]; type: { ofType: Named | null } & Named }>;
type Types = { __schema: { types: (Named & { fields: Field[] | null; inputFields: Named[] | null })[] } };

t.test('lists are filtered by the columns that the catalog names, and by nothing else', async (test) => {
  const { __schema } = await admin.query<Types>(
    '{ __schema { types { name fields { name args { name type { name } } type { name ofType { name } } } inputFields { name } } } }',
  );
  const lists = __schema.types.find(({ name }) => name === 'Query')?.fields ?? [];
  const inputs = new Map(__schema.types.map(({ name, inputFields }) => [name, inputFields ?? []]));
  const known = new Set<string>();
  for (const [table, { list, filters = [] }] of Object.entries(shownTables)) {
    if (!list) continue;
    const filter = lists.find(({ name }) => name === list)?.args.find(({ name }) => name === 'filter');
    const offered = filter ? inputs.get(filter.type.name)?.map(({ name }) => name) : [];
    test.same(offered?.sort(), filters.map(camelCase).sort(), table);
    if (filter) known.add(filter.type.name);
  }
  test.ok(known.size >= 10);
  // Over a relation, or by an alternative, no index helps.
  const names = [...inputs].filter(([name]) => name.endsWith('Filter')).flatMap(([, fields]) => fields);
  test.same(
    names.filter(({ name }) => /^(and|or|not|every|some|none)$|Exists$/.test(name)),
    [],
  );
});

t.test('each filter finds what it names', async (test) => {
  const { auditEntries, runRequests } = await scoped.query(`{
    auditEntries(filter: { action: { in: ["task.cancel"] }, actorKind: { equalTo: admin } }) { nodes { id } }
    runRequests(filter: { state: { equalTo: cancelled } }) { nodes { id } }
  }`);
  test.same([auditEntries, runRequests], [{ nodes: [] }, { nodes: [] }]);
});

/** What the rows of a list have in common besides the organization, where it is read through what it belongs to. */
const BELOW: Readonly<Record<string, string>> = { messages: 'chat_id' };

t.test(
  'each filter has an index of all rows that the list may show, by the organization and what is asked for',
  async (test) => {
    const { rows } = await app.database.owner.query<{ table: string; columns: string[]; predicate: string | null }>(
      `select c.relname::text as table, pg_get_expr(i.indpred, i.indrelid) as predicate,
       (select array_agg(a.attname::text order by k.place) from unnest(i.indkey::int2[]) with ordinality k(attnum, place)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum where k.place <= i.indnkeyatts) as columns
     from pg_index i join pg_class c on c.oid = i.indrelid
     where c.relnamespace = 'app'::regnamespace and i.indisvalid and i.indexprs is null`,
    );
    const without: string[] = [];
    for (const [table, { filters = [] }] of Object.entries(shownTables)) {
      for (const column of filters) {
        const common = new Set(['organization_id', BELOW[table]]);
        // The policy hides organizations that are deleted, and what equals something is not null.
        const implied = [null, `(${column} IS NOT NULL)`, table === 'organizations' ? '(deleted_at IS NULL)' : null];
        const found = rows.some((index) => {
          const org = index.columns.indexOf(column);
          const before = index.columns.slice(0, org);
          return (
            index.table === table &&
            org >= 0 &&
            before.every((name) => common.has(name)) &&
            implied.includes(index.predicate)
          );
        });
        if (!found) without.push(`${table}.${column}`);
      }
    }
    const ofOne = Object.entries(shownTables).flatMap(([table, shown]) =>
      (shown.filtersOfOne ?? []).map((column) => `${table}.${column}`),
    );
    test.same(without, ofOne);
  },
);

t.test('a filter without an index is one of one organization alone', async (test) => {
  const filters: readonly [string, Record<string, unknown>][] = [
    ['query { runRequests(filter: { state: { equalTo: queued } }) { nodes { id } } }', {}],
    [
      'query ($filter: RunRequestFilter) { ...L } fragment L on Query { runRequests(filter: $filter) { nodes { id } } }',
      { filter: { state: { in: ['queued'] } } },
    ],
    [
      'query ($filter: RunRequestFilter = { state: { in: [queued] } }) { runRequests(filter: $filter) { nodes { id } } }',
      {},
    ],
  ];
  for (const [query, variables] of filters) {
    const { errors } = await admin.refused(query, variables);
    test.match(errors, [{ extensions: { issues: [{ code: 'organization_required' }] } }], query);
    test.ok(await scoped.query(query, variables));
  }
  test.ok(
    await admin.query(
      '{ organizations { nodes { runRequests(first: 1, filter: { state: { equalTo: queued } }) { nodes { id } } } } }',
    ),
  );
});
