import t from 'tap';
import { shownTables } from '../../../api/admin/schema/catalog.ts';
import { adminClient } from '../../support/admin.ts';
import { startTestApp } from '../../support/app.ts';

const admin = adminClient(await startTestApp(t));

type Named = Readonly<{ name: string }>;
type Field = Named & Readonly<{ args: (Named & { type: Named })[]; type: { ofType: Named | null } & Named }>;
type Types = { __schema: { types: (Named & { fields: Field[] | null; inputFields: Named[] | null })[] } };

const camelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

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
  const { auditEntries, runRequests } = await admin.query(`{
    auditEntries(filter: { action: { in: ["task.cancel"] }, actorKind: { equalTo: admin } }) { nodes { id } }
    runRequests(filter: { state: { equalTo: cancelled } }) { nodes { id } }
  }`);
  test.same([auditEntries, runRequests], [{ nodes: [] }, { nodes: [] }]);
});
