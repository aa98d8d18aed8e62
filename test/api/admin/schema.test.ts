import t from 'tap';
import { adminClient, type Row } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTenant } from '../../support/tenant.ts';

const app = await startTestApp(t);
const own = await createTenant(sqlOf(app));
await createTenant(sqlOf(app));
const admin = adminClient(app);
const scoped = adminClient(app, own.organizationId);

type Page = Readonly<{ nodes: Row[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } }>;
type Field = Readonly<{
  name: string;
  description: string | null;
  type: { name: string | null; ofType: { name: string | null } | null };
}>;
type Type = Readonly<{ name: string; kind: string; description: string | null; fields: Field[] | null }>;

/** The lists at the root, and the tables that they read. */
const LISTS: Readonly<Record<string, string>> = {
  actions: 'actions',
  agentProfiles: 'agent_profiles',
  auditEntries: 'audit_entries',
  chats: 'chats',
  dispatches: 'dispatch',
  humanInboxItems: 'human_inbox_items',
  insightConnectors: 'insight_connectors',
  insightSources: 'insight_sources',
  insightUnits: 'insight_units',
  integrations: 'integrations',
  onboardings: 'onboardings',
  organizations: 'organizations',
  runRequests: 'run_requests',
  runs: 'runs',
  schedules: 'schedules',
  tasks: 'tasks',
};

const types = async () => {
  const { __schema } = await admin.query<{ __schema: { types: Type[] } }>(
    `{ __schema { types { name kind description fields { name description type { name ofType { name } } } } } }`,
  );
  return new Map(__schema.types.map((type) => [type.name, type]));
};

/** The name of a field's type, also where it is never null. */
const typeName = ({ type }: Field) => type.name ?? type.ofType?.name ?? '';
const isConnection = (field: Field) => typeName(field).endsWith('Connection');

/** All rows of a list, one page after the other. */
async function paged(ask: (after: string | null) => Promise<Page>): Promise<Row[]> {
  const rows: Row[] = [];
  let after: string | null = null;
  for (;;) {
    const page: Page = await ask(after);
    rows.push(...page.nodes);
    if (!page.pageInfo.hasNextPage) return rows;
    after = page.pageInfo.endCursor;
  }
}

t.test('what an action is called with, and what came of it, is not shown', async (test) => {
  const known = await types();
  const names = known.get('Action')?.fields?.map(({ name }) => name) ?? [];
  test.ok(names.includes('argumentsSha256'));
  test.same(
    names.filter((name) => /^(arguments|argumentsSchema|result|leaseId|subjectHash|toolDigest)$/.test(name)),
    [],
  );
  test.notOk(known.has('ActionInvocation'));
});

t.test('every list at the root, page by page: all rows once, with a header those of one organization', async (test) => {
  for (const [list, table] of Object.entries(LISTS)) {
    const organization = table === 'organizations' ? 'id' : 'organizationId';
    const column = table === 'organizations' ? 'id' : 'organization_id';
    const text = `query ($after: Cursor) { page: ${list}(first: 1, after: $after) {
      nodes { ${organization} } pageInfo { hasNextPage endCursor } } }`;
    const { rows } = await app.database.owner.query<{ id: string }>(`select ${column}::text as id from app.${table}`);
    const ids = (found: Row[]) => found.map((row) => row[organization]).sort();
    const all = await paged(async (after) => (await admin.query<{ page: Page }>(text, { after })).page);
    test.same(ids(all), rows.map(({ id }) => id).sort(), list);
    const one = await paged(async (after) => (await scoped.query<{ page: Page }>(text, { after })).page);
    test.same(
      ids(one),
      rows.filter(({ id }) => id === own.organizationId).map(({ id }) => id),
      `${list} of one`,
    );
  }
});

t.test('every list below a row, page by page', async (test) => {
  const known = await types();
  let lists = 0;
  for (const list of Object.keys(LISTS)) {
    const root = known.get('Query')?.fields?.find(({ name }) => name === list);
    const row = root ? typeName(root).replace(/Connection$/, '') : '';
    for (const field of known.get(row)?.fields?.filter(isConnection) ?? []) {
      lists += 1;
      const text = `query ($after: Cursor, $first: Int!) { parents: ${list}(last: 50) { nodes {
        page: ${field.name}(first: $first, after: $after) { nodes { __typename } pageInfo { hasNextPage endCursor } } } } }`;
      const ask = async (first: number, after: string | null) =>
        (await scoped.query<{ parents: { nodes: { page: Page }[] } }>(text, { first, after })).parents.nodes;
      const whole = await ask(100, null);
      // The longest list of all rows: the others have less to page through.
      const index = whole.reduce(
        (best, { page }, at) => (page.nodes.length > (whole[best]?.page.nodes.length ?? 0) ? at : best),
        0,
      );
      const pages = await paged(async (after) => (await ask(2, after))[index]?.page as Page);
      test.equal(pages.length, whole[index]?.page.nodes.length ?? 0, `${list}.${field.name}`);
    }
  }
  test.ok(lists > 30, `${lists} lists`);
});

t.test('states are the enums that their checks name', async (test) => {
  const { status, state } = await admin.query<Record<string, { enumValues: { name: string }[] }>>(
    `{ status: __type(name: "TaskStatus") { enumValues { name } } state: __type(name: "RunRequestState") { enumValues { name } } }`,
  );
  const names = (type: { enumValues: { name: string }[] } | undefined) => type?.enumValues.map(({ name }) => name);
  test.same(names(status), ['pending', 'blocked', 'running', 'waiting', 'completed', 'failed', 'cancelled']);
  test.same(names(state), ['queued', 'published', 'leased', 'started', 'finished', 'cancelled']);
});

t.test('the schema says what its rows and their fields are, and knows no secrets, offsets or writes', async (test) => {
  const known = await types();
  for (const list of [
    'Task',
    'Run',
    'RunRequest',
    'Organization',
    'AuditEntry',
    'Chat',
    'Message',
    'Schedule',
    'InsightCompaction',
    'InsightConnector',
    'InsightCursor',
    'InsightHead',
    'InsightPublication',
    'InsightSegment',
    'InsightSource',
    'InsightUnit',
    'Integration',
    'IntegrationConnectionRecord',
  ]) {
    const type = known.get(list);
    test.ok(type?.description, list);
    const scalars = type?.fields?.filter((field) => !known.get(typeName(field))?.fields) ?? [];
    for (const field of scalars) test.ok(field.description, `${list}.${field.name}`);
  }
  const fields = [...known.values()].flatMap((type) => (type.fields ?? []).map(({ name }) => `${type.name}.${name}`));
  const secret =
    /secret|hash|token(?!s|Version|ExpiresAt)|storageKey|content$|password|searchText|harnessSession|dedupeKey|totalCount/i;
  test.same(
    fields.filter((name) => secret.test(name) && name !== 'Task.dedupeKey'),
    [],
  );
  test.same(
    fields.filter((name) => /ByOrganizationId/.test(name)),
    [],
    'no relation that the catalog does not name',
  );
  const mutations = known.get('Mutation')?.fields?.map(({ name }) => name);
  // Owners alone decide about actions and integrations: nothing of them is here.
  test.same(mutations?.toSorted(), [
    'cancelTask',
    'expireLease',
    'pauseSchedule',
    'publishCatalogRevision',
    'reactivateOrganization',
    'requeueRunRequest',
    'resumeDispatch',
    'resumeSchedule',
    'retryTask',
    'stopDispatch',
    'suspendOrganization',
  ]);
  test.notOk(known.has('Subscription'));
  const { args } = await admin.query<{ args: { fields: { name: string; args: { name: string }[] }[] } }>(
    `{ args: __type(name: "Query") { fields { name args { name } } } }`,
  );
  const tasks = args.fields.find(({ name }) => name === 'tasks')?.args.map(({ name }) => name);
  test.same(tasks?.sort(), ['after', 'before', 'filter', 'first', 'last', 'orderBy']);
});
