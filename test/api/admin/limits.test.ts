import { randomUUID } from 'node:crypto';
import { getIntrospectionQuery } from 'graphql';
import pg from 'pg';
import t from 'tap';
import { openAdmin } from '../../../api/admin/instance.ts';
import { createLogger } from '../../../engine/log.ts';
import { adminClient, GRAPHQL_PATH, type RefusedQuery, type Row } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { ADMIN_TOKEN, startTestApp } from '../../support/app.ts';
import { createTenant } from '../../support/tenant.ts';

const app = await startTestApp(t);
const own = await createTenant(sqlOf(app));
const admin = adminClient(app);
const scoped = adminClient(app, own.organizationId);

type Page = Readonly<{ nodes: Row[]; pageInfo: { hasNextPage: boolean } }>;

/** Status, code and the codes of the issues of a refusal's only error. */
function said({ status, errors }: RefusedQuery): string {
  const [error] = errors;
  if (!error || errors.length > 1) throw new Error(`expected one error: ${JSON.stringify(errors)}`);
  const issues = (error.extensions.issues ?? []).map(({ code }) => code);
  return [status, error.extensions.code, ...issues].join(' ');
}

t.test('a list has 50 rows unless it says otherwise, and at most 100', async (test) => {
  await app.database.owner.query(
    `insert into app.chats (organization_id, title, last_message_at)
     select $1, 'Chat ' || n, now() - n * interval '1 minute' from generate_series(1, 120) n`,
    [own.organizationId],
  );
  const length = async (text: string, variables = {}) => {
    const { chats } = await admin.query<{ chats: Page }>(text, variables);
    return chats.nodes.length;
  };
  const list = (args: string, head = '') => `${head} { chats${args} { nodes { id } pageInfo { hasNextPage } } }`;
  test.equal(await length(list('')), 50);
  test.equal(await length(list('(first: null)')), 50);
  test.equal(await length(list('(first: 100)')), 100);
  test.equal(await length(list('(last: 7)')), 7);
  const variable = list('(first: $first)', 'query ($first: Int)');
  test.equal(await length(variable), 50);
  test.equal(await length(variable, { first: null }), 50);
  test.equal(await length(variable, { first: 3 }), 3);
  test.equal(await length(list('(first: $first)', 'query ($first: Int = 60)')), 60);
  const nested = await scoped.query<{ organizations: { nodes: { chats: Page }[] } }>(
    '{ organizations { nodes { chats { nodes { id } pageInfo { hasNextPage } } } } }',
  );
  test.match(nested.organizations.nodes, [{ chats: { pageInfo: { hasNextPage: true } } }]);
  test.equal(nested.organizations.nodes[0]?.chats.nodes.length, 50);

  test.equal(said(await admin.refused(list('(first: 101)'))), '400 validation_failed too_many_rows');
  test.equal(said(await admin.refused(list('(last: 1000)'))), '400 validation_failed too_many_rows');
  test.equal(said(await admin.refused(variable, { first: 101 })), '400 validation_failed too_many_rows');
  test.equal(
    said(await admin.refused(list('(first: $first)', 'query ($first: Int = 101)'))),
    '400 validation_failed too_many_rows',
  );
  test.equal(said(await admin.refused(list('(first: -1)'))), '400 validation_failed too_few_rows');
  test.equal(said(await admin.refused(list('(first: 1, last: 1)'))), '400 validation_failed first_or_last');
  test.equal(said(await admin.refused(list('(offset: 1)'))), '400 validation_failed graphql_invalid');
});

t.test('two operations of one document have pages of their own', async (test) => {
  const query = `query A($first: Int) { chats(first: $first) { nodes { id } } }
    query B($count: Int) { chats(first: $count) { nodes { id } } }`;
  const ask = async (operationName: string, variables: Record<string, unknown>) => {
    const reply = await fetch(new URL(GRAPHQL_PATH, app.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_TOKEN}` },
      body: JSON.stringify({ query, operationName, variables }),
    });
    return ((await reply.json()) as { data: { chats: Page } }).data.chats.nodes.length;
  };
  test.equal(await ask('A', { first: 2 }), 2);
  test.equal(await ask('B', { count: 3 }), 3);
  test.equal(await ask('B', {}), 50);
});

t.test('a query is neither too deep nor too long nor too costly', async (test) => {
  const deep = (levels: number) =>
    `{ tasks(first: 1) { nodes ${'{ parent '.repeat(levels)} { id } ${'}'.repeat(levels)} } }`;
  await admin.query(deep(9));
  test.equal(said(await admin.refused(deep(10))), '400 validation_failed too_deep');
  const costly = '{ organizations { nodes { tasks { nodes { runs { nodes { id } } } } } } }';
  test.equal(said(await admin.refused(costly)), '400 validation_failed too_costly');
  await admin.query(
    '{ organizations(first: 10) { nodes { tasks(first: 10) { nodes { runs(first: 10) { nodes { id } } } } } } }',
  );
  const aliases = Array.from({ length: 150 }, (_, index) => `a${index}: tasks(first: 100) { nodes { id } }`).join(' ');
  test.equal(said(await admin.refused(`{ ${aliases} }`)), '400 validation_failed too_costly');
  const fragments = `{ ...A } fragment A on Query { ...B b1: organizations { nodes { ...T } } } fragment B on Query { b2: organizations { nodes { ...T } } }
    fragment T on Organization { tasks(first: 100) { nodes { causes { kind } } } }`;
  test.equal(said(await admin.refused(fragments)), '400 validation_failed too_costly');
  test.equal(
    said(await admin.refused(`{ tasks { nodes { id } } } #${'x'.repeat(20_000)}`)),
    '400 validation_failed too_long',
  );
  const tokens = `{ ${'__typename '.repeat(4_100)} }`.slice(0, 19_999);
  test.equal((await admin.refused(tokens)).status, 400);
  // What every client asks for first.
  await admin.query(getIntrospectionQuery());
});

t.test('orders that have an index within one organization alone need one', async (test) => {
  const text = '{ tasks(orderBy: [PRIORITY_DESC]) { nodes { id } } }';
  test.equal(said(await admin.refused(text)), '400 validation_failed organization_required');
  const variable = 'query ($by: [TaskOrderBy!]) { ...L } fragment L on Query { tasks(orderBy: $by) { nodes { id } } }';
  test.equal(
    said(await admin.refused(variable, { by: ['UPDATED_AT_ASC'] })),
    '400 validation_failed organization_required',
  );
  await admin.query(variable, { by: ['CREATED_AT_ASC'] });
  await scoped.query(text);
  await admin.query('{ organizations { nodes { tasks(first: 1, orderBy: [PRIORITY_DESC]) { nodes { id } } } } }');
});

t.test('what is wrong with a request is said by code, with the id of the request', async (test) => {
  const wrong: readonly [string, Record<string, unknown>, string][] = [
    ['{ tasks { nodes { id ', {}, '400 validation_failed graphql_invalid'],
    ['{ passwords }', {}, '400 validation_failed graphql_invalid'],
    ['subscription { tasks { nodes { id } } }', {}, '400 validation_failed graphql_invalid'],
    ['query A { __typename } query B { __typename }', {}, '400 validation_failed'],
    ['query ($id: UUID!) { task(organizationId: $id, id: $id) { id } }', {}, '400 validation_failed graphql_invalid'],
    [
      'query ($id: UUID!) { task(organizationId: $id, id: $id) { id } }',
      { id: 'x' },
      '400 validation_failed graphql_invalid',
    ],
    ['{ tasks(after: "nonsense") { nodes { id } } }', {}, '200 validation_failed graphql_invalid'],
    [
      '{ tasks(filter: { createdAt: { lessThan: "yesterdayish" } }) { nodes { id } } }',
      {},
      '200 validation_failed invalid_value',
    ],
    ['{ tasks(filter: { status: { equalTo: pend } }) { nodes { id } } }', {}, '400 validation_failed graphql_invalid'],
  ];
  for (const [text, variables, expected] of wrong) {
    const refused = await admin.refused(text, variables);
    test.equal(said(refused), expected, text);
    test.match(refused.errors[0]?.extensions.requestId, /^[0-9a-f-]{36}$/);
    test.notMatch(JSON.stringify(refused), /select|pg_|app\.|syntax for type|at character/i, 'nothing of SQL');
  }
});

t.test('the message is that of the only issue, or of all of them together', async (test) => {
  const message = async (text: string) => (await admin.refused(text)).errors[0]?.message;
  test.equal(await message('{ tasks(first: 101) { nodes { id } } }'), 'gives at most 100 rows');
  test.equal(
    await message('{ tasks(first: 101) { nodes { id } } chats(first: 101) { nodes { id } } }'),
    'The query is beyond its limits.',
  );
});

t.test('a statement that takes too long ends, and says so', async (test) => {
  const holder = new pg.Client({ connectionString: app.database.url });
  await holder.connect();
  test.teardown(() => holder.end());
  await holder.query('begin');
  await holder.query('lock table app.schedules in access exclusive mode');
  const refused = await admin.refused('{ schedules { nodes { id } } }');
  test.equal(said(refused), '200 query_timeout');
  test.match(refused.errors, [{ path: ['schedules'], extensions: { statusCode: 503 } }]);
  await holder.query('rollback');
  await admin.query('{ schedules { nodes { id } } }');
});

t.test('what nobody foresaw is masked, and logged under the id of the request', async (test) => {
  await app.database.owner.query('alter table app.schedules rename column title to caption');
  const refused = await admin.refused('{ schedules(first: 1) { nodes { title } } }');
  await app.database.owner.query('alter table app.schedules rename column caption to title');
  test.equal(said(refused), '200 internal_error');
  const [error] = refused.errors;
  test.notMatch(JSON.stringify(refused), /caption|does not exist|42703/);
  const requestId = error?.extensions.requestId;
  test.ok(
    app.logged.some((line) => line['requestId'] === requestId && /does not exist/.test(JSON.stringify(line['err']))),
  );
});

t.test(
  'the schema is built by the first request, once for all that come meanwhile, and again after a failure',
  async (test) => {
    const log = createLogger('silent', 'test');
    const onWakes = app.services.db.wake;
    const url = new URL(app.database.url);
    url.port = '1';
    const away = openAdmin({ config: app.config, url: url.href, onWakes, log });
    const caller = { admin: 'tess', organizationId: null, requestId: randomUUID() };
    const request = { query: '{ __typename }', operationName: undefined, variables: {} };
    await test.rejects(
      away.run(request, caller, () => {}),
      { code: 'ECONNREFUSED' },
    );
    await test.rejects(
      away.run(request, caller, () => {}),
      { code: 'ECONNREFUSED' },
      'tried again',
    );
    await away.close();
    await test.rejects(
      away.run(request, caller, () => {}),
      /closed/,
    );

    const before = await connections();
    const there = openAdmin({ config: app.config, url: app.database.url, onWakes, log });
    test.teardown(() => there.close());
    const responses = await Promise.all([1, 2, 3].map(() => there.run(request, caller, () => {})));
    for (const response of responses) test.same(response, { status: 200, body: { data: { __typename: 'Query' } } });
    test.ok((await connections()) - before <= 4, 'one build has one pool');
  },
);

async function connections(): Promise<number> {
  const { rows } = await app.database.owner.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity
     where datname = current_database() and application_name = 'business-runner admin'`,
  );
  return rows[0]?.n ?? 0;
}
