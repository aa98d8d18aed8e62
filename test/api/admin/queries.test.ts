import { readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { adminClient, type Row } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTenant } from '../../support/tenant.ts';

const app = await startTestApp(t);
const own = await createTenant(sqlOf(app));
const other = await createTenant(sqlOf(app));
const admin = adminClient(app);
const scoped = adminClient(app, own.organizationId);

type Page = Readonly<{ nodes: Row[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } }>;

t.test('a task with what it is related to, and why it does not run', async (test) => {
  const { tasks } = await admin.query<{ tasks: Page }>(
    `query Tasks($organization: UUID!) {
      tasks(filter: { organizationId: { equalTo: $organization }, status: { in: [blocked] } }) {
        nodes {
          identifier status phase
          causes { kind details }
          organization { id name }
          ownerAgentProfile { key }
          dependencies(first: 5) { nodes { required dependsOnTask { identifier status } } }
          runs(first: 5) { nodes {
            status durationSeconds costMinorUnits inputTokens
            runRequest { state leaseRemainingSeconds queueAgeSeconds task { identifier } }
          } }
        }
      }
    }`,
    { organization: own.organizationId },
  );
  const [asking, waiting] = tasks.nodes as [Row, Row];
  test.match(asking, {
    identifier: 'T-3',
    status: 'blocked',
    causes: [{ kind: 'human', details: { inboxItemId: String } }],
    organization: { id: own.organizationId },
    runs: {
      nodes: [
        {
          status: 'succeeded',
          durationSeconds: Number,
          costMinorUnits: '0',
          inputTokens: String,
          runRequest: { state: 'finished', leaseRemainingSeconds: null, task: { identifier: 'T-3' } },
        },
      ],
    },
  });
  test.match(waiting, {
    causes: [{ kind: 'dependency' }],
    dependencies: { nodes: [{ required: true, dependsOnTask: { identifier: 'T-1', status: 'running' } }] },
  });
});

t.test('an action with what it is about, whoever asks for it', async (test) => {
  const fields = `id status kind risk tool summary decision argumentsSha256 version expiresAt
    organization { id } integration { key } task { identifier } run { id } agentProfile { key } chat { id } message { id }
    files { nodes { argument name sizeBytes sha256 } }`;
  const { actions } = await scoped.query<{ actions: Page }>(
    `{ actions(filter: { status: { in: [awaiting_approval] } }) { nodes { ${fields} } } }`,
  );
  test.equal(actions.nodes.length, 1);
  const [action] = actions.nodes;
  test.match(action, {
    status: 'awaiting_approval',
    organization: { id: own.organizationId },
    integration: { key: String },
    task: { identifier: String },
    run: { id: String },
    agentProfile: { key: String },
    chat: null,
    message: null,
    files: { nodes: [{ argument: 'body', name: 'body.txt', sizeBytes: '4' }] },
  });
  const { humanInboxItems } = await scoped.query<{ humanInboxItems: Page }>(
    `{ humanInboxItems(filter: { status: { equalTo: open } }) { nodes { kind action { id } } } }`,
  );
  test.match(
    humanInboxItems.nodes.filter(({ kind }) => kind === 'approval'),
    [{ action: { id: action?.['id'] } }],
  );
  const one = `query($organization: UUID!, $id: UUID!) { action(organizationId: $organization, id: $id) { id } }`;
  const at = { organization: own.organizationId, id: action?.['id'] };
  test.same(await admin.query(one, at), { action: { id: action?.['id'] } });
  test.same(await adminClient(app, other.organizationId).query(one, at), { action: null });
});

t.test('rates of currencies, and how far they are collected, whichever organization is asked for', async (test) => {
  await app.database.owner.query(
    `insert into app.currency_rates (currency, day, rate) values ('USD', '2026-11-27', 1.1600)`,
  );
  const query = `query($day: Date!) {
    currencyRate(currency: "USD", day: $day) { rate }
    currencyRateSources { nodes { key newestDay failureCount errorCode leaseExpiresAt } }
  }`;
  const source = { key: 'ecb', newestDay: null, failureCount: 0, errorCode: null, leaseExpiresAt: null };
  for (const client of [admin, scoped]) {
    test.same(await client.query(query, { day: '2026-11-27' }), {
      currencyRate: { rate: '1.1600' },
      currencyRateSources: { nodes: [source] },
    });
  }
  test.match(await admin.query(query, { day: '2026-11-28' }), { currencyRate: null });
});

t.test('what is collected, how fresh it is, and what fails', async (test) => {
  const { insightSources, insightConnectors } = await scoped.query<Record<string, Page>>(
    `{ insightSources(first: 5) { nodes {
         id connectorKey dataset environment inScope generation coverage lastCompletedAt failureCount lastError
         organization { id insightHead { revision } } integration { key insightConnector { dueAt } }
         cursors(first: 5) { nodes { mode dueAt completedAt failureCount } }
         units(first: 5) { nodes { mode state records changed revision error connector { integrationId } } }
         segments(first: 5) { nodes { month rowCount sizeBytes sha256 publishedRevision retiredAt } }
         publications(first: 5) { nodes { revision added retired } }
         compactions(first: 5) { nodes { month dueAt failureCount source { dataset } } }
       } }
       insightConnectors(first: 5) { nodes { dueAt discoveredAt failureCount lastError retryNotBefore units(first: 5) { nodes { mode } } } } }`,
  );
  test.match(insightSources?.nodes, [
    {
      dataset: 'stripe.balance_tx',
      environment: 'live',
      inScope: true,
      lastCompletedAt: null,
      lastError: null,
      organization: { id: own.organizationId, insightHead: { revision: /^[1-9]/ } },
      integration: { key: String, insightConnector: { dueAt: String } },
      compactions: { nodes: Array },
      cursors: { nodes: [{ mode: /backfill|tail/ }, { mode: /backfill|tail/ }] },
    },
  ]);
  const [source = {}] = insightSources?.nodes ?? [];
  const of = (list: string) => (source[list] as Pick<Page, 'nodes'>).nodes;
  test.match(
    of('units').filter(({ revision }) => revision === '1'),
    [{ mode: 'tail', state: 'committed', connector: { integrationId: String } }],
  );
  test.ok(of('segments').length > 0);
  for (const file of of('segments')) test.match(file, { month: '2026-01', rowCount: 1, sha256: /^a+$/ });
  test.match(
    of('publications').filter(({ revision }) => revision === '1'),
    [{ added: 2, retired: 0 }],
  );
  const [collected] = (insightConnectors?.nodes ?? []).filter(({ discoveredAt }) => discoveredAt);
  test.match(collected, { lastError: null, units: { nodes: [{}, {}] } });
  const one =
    'query($organization: UUID!, $id: UUID!) { insightSource(organizationId: $organization, id: $id) { id } }';
  const at = { organization: own.organizationId, id: source['id'] };
  test.match(await admin.query(one, at), { insightSource: { id: String } });
  test.same(await adminClient(app, other.organizationId).query(one, at), { insightSource: null });
});

t.test('the query of docs/administration.md is one', async (test) => {
  const page = await readFile(path.resolve(import.meta.dirname, '../../../docs/administration.md'), 'utf8');
  const body = /-d '(\{"query": "\{ tasks.*\})'/.exec(page)?.[1] ?? '';
  const { tasks } = await admin.query<{ tasks: Page }>((JSON.parse(body) as { query: string }).query);
  test.ok(tasks.nodes.length > 0);
});

t.test('a lease that runs, and a request that waits', async (test) => {
  const { runRequests } = await scoped.query<{ runRequests: Page }>(
    `{ runRequests { nodes { state kind leaseRemainingSeconds queueAgeSeconds } } }`,
  );
  const [started] = runRequests.nodes.filter(({ state }) => state === 'started');
  test.match(started, { queueAgeSeconds: null });
  test.ok(Number(started?.['leaseRemainingSeconds']) > 0);
  const [published] = runRequests.nodes.filter(({ state }) => state === 'published');
  test.match(published, { leaseRemainingSeconds: null });
  test.ok(Number(published?.['queueAgeSeconds']) >= 0);
});

t.test('with a header a row of another organization is not there, by whatever way', async (test) => {
  const { rows } = await app.database.owner.query<{ id: string }>(
    'select id::text from app.tasks where organization_id = $1 limit 1',
    [other.organizationId],
  );
  const task = { organization: other.organizationId, id: rows[0]?.id };
  const text = `query ($organization: UUID!, $id: UUID!) {
    task(organizationId: $organization, id: $id) { id }
    organization(id: $organization) { id }
    tasks(filter: { organizationId: { equalTo: $organization } }) { nodes { id } }
    taskCounts(organizationId: $organization) { count }
    runCounts(organizationId: $organization) { count }
    runRequestCounts(organizationId: $organization) { ready }
  }`;
  test.match(await admin.query(text, task), { task: { id: task.id }, organization: { id: task.organization } });
  test.same(await scoped.query(text, task), {
    task: null,
    organization: null,
    tasks: { nodes: [] },
    taskCounts: [],
    runCounts: [],
    runRequestCounts: [],
  });
});

t.test('orders and ranges go by what has an index', async (test) => {
  const { tasks } = await scoped.query<{ tasks: Page }>(
    '{ tasks(orderBy: [created_at_ASC]) { nodes { identifierNumber createdAt } } }'.replace(
      'created_at_ASC',
      'CREATED_AT_ASC',
    ),
  );
  test.same(
    tasks.nodes.map(({ identifierNumber }) => identifierNumber),
    [1, 2, 3],
  );
  const second = tasks.nodes[1]?.['createdAt'];
  const { later } = await scoped.query<{ later: Page }>(
    `query ($from: Datetime!) { later: tasks(filter: { createdAt: { greaterThanOrEqualTo: $from } }) { nodes { identifierNumber } } }`,
    { from: second },
  );
  test.same(
    later.nodes.map(({ identifierNumber }) => identifierNumber),
    [3, 2],
    'the newest first, as long as nobody asks for something else',
  );
  const { byPriority } = await scoped.query<{ byPriority: Page }>(
    '{ byPriority: tasks(orderBy: [PRIORITY_DESC]) { nodes { identifierNumber } } }',
  );
  test.equal(byPriority.nodes.length, 3);
});

t.test('counts by state are those of the tables', async (test) => {
  const expected = await app.database.owner.query(
    `select organization_id as "organizationId", status, count(*)::text as count from app.tasks group by 1, 2 order by 1, 2`,
  );
  const { taskCounts, runCounts, runRequestCounts } = await admin.query<Record<string, Row[]>>(
    `{ taskCounts { organizationId status count }
       runCounts { organizationId status count }
       runRequestCounts { organizationId kind ready held capacity } }`,
  );
  test.same(taskCounts, expected.rows);
  test.ok(runCounts?.some(({ status, count }) => status === 'succeeded' && count === '1'));
  const { organizations } = await admin.query<{ organizations: Page }>(
    `{ organizations { nodes { id taskCounts { status count } runRequestCounts { kind ready held } } } }`,
  );
  for (const organization of organizations.nodes) {
    const { id } = organization;
    test.same(
      organization['taskCounts'],
      expected.rows.filter((row) => row.organizationId === id).map(({ status, count }) => ({ status, count })),
    );
    test.same(
      organization['runRequestCounts'],
      runRequestCounts
        ?.filter((row) => row['organizationId'] === id)
        .map(({ kind, ready, held }) => ({ kind, ready, held })),
    );
  }
});
