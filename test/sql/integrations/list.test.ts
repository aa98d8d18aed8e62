import t, { type Test } from 'tap';
import { authorizationEpoch, createTestOrganization, SERVICE, type TestOrganization } from '../../support/fixtures.ts';
import { openSession, openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const LIMIT = 20;
const TOOLS = 2;

/** Integrations of keys i-00001, i-00002, …, each connected and with two tools. */
async function withIntegrations(count: number): Promise<TestOrganization> {
  const org = await createTestOrganization(sql);
  const client = await sql.owner.connect();
  try {
    // As rows: 10,000 transitions take minutes.
    await client.query('begin; set local session_replication_role = replica');
    await client.query(
      `insert into app.integrations (organization_id, key, provider, name, settings_required, connection_revision)
       select $1, 'i-' || lpad(n::text, 5, '0'), 'stripe', 'Test', false, 1 from generate_series(1, $2::integer) n`,
      [org.organizationId, count],
    );
    await client.query(
      `insert into app.integration_connections (organization_id, integration_id, kind, subject_hash, connected_at, check_due_at)
       select organization_id, id, 'api_key', md5(key) || md5(key), now(), now() from app.integrations
       where organization_id = $1`,
      [org.organizationId],
    );
    await client.query(
      `insert into app.integration_tools (organization_id, integration_id, key, place, title, effect, risk, input_schema,
         digest, enabled)
       select i.organization_id, i.id, 'tool.' || n, n, 'Tool', 'read', 'low', '{}', md5(i.key) || md5(i.key), true
       from app.integrations i, generate_series(1, $2::integer) n where i.organization_id = $1`,
      [org.organizationId, TOOLS],
    );
    await client.query('commit');
  } finally {
    client.release();
  }
  return org;
}

type Page = Readonly<{ key: string | null; backward: boolean }>;

/** The keys of a page, and how many rows of the tables Postgres fetched for it; both as owners and as agents read it. */
async function read(test: Test, org: TestOrganization, page: Page) {
  const { organizationId } = org;
  const session = await openSession(test, sql);
  const epoch = await authorizationEpoch(sql, organizationId);
  await session.begin();
  const given = { organizationId, ...page, inclusive: false, limit: LIMIT };
  const { integrations } = await transition(session, 'integrations_list', given);
  await transition(session, 'integrations_for_agent', { ...given, actor: SERVICE, authorizationEpoch: epoch });
  const { rows } = await session.query(
    `select coalesce(sum(seq_tup_read), 0)::integer as scanned, coalesce(sum(idx_tup_fetch), 0)::integer as fetched
     from pg_stat_xact_user_tables where relname in ('integrations', 'integration_connections', 'integration_tools')`,
    [],
  );
  await session.query('rollback', []);
  const keys = (integrations as { key: string }[]).map(({ key }) => key);
  return { keys, scanned: Number(rows[0]?.['scanned']), fetched: Number(rows[0]?.['fetched']) };
}

t.test('a page of 10,000 integrations reads the rows that it shows, wherever it begins', async (test) => {
  const [few, many] = [await withIntegrations(10), await withIntegrations(10_000)];
  await sql.owner.query('analyze app.integrations, app.integration_connections, app.integration_tools');
  const key = (n: number) => `i-${String(n).padStart(5, '0')}`;
  // Each integration with its connection and its tools, for owners and for agents.
  const rows = (integrations: number) => 2 * integrations * (2 + TOOLS);
  const ten = await read(test, few, { key: null, backward: false });
  test.equal(ten.keys.length, 10);
  test.ok(ten.scanned + ten.fetched <= rows(10), `${ten.scanned + ten.fetched} rows of ten integrations`);
  const pages: readonly (readonly [Page, number])[] = [
    [{ key: null, backward: false }, 1],
    [{ key: key(5_000), backward: false }, 5_001],
    [{ key: key(9_980), backward: false }, 9_981],
    [{ key: null, backward: true }, 9_981],
    [{ key: key(5_000), backward: true }, 4_980],
  ];
  for (const [page, first] of pages) {
    const { keys, scanned, fetched } = await read(test, many, page);
    const expected = Array.from({ length: LIMIT }, (_, index) => key(first + index));
    test.same(keys, expected, JSON.stringify(page));
    test.equal(scanned, 0);
    // A page of another key looks at that one too.
    test.ok(fetched <= rows(LIMIT) + 2, `${fetched} rows`);
  }
});
