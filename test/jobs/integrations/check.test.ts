import t from 'tap';
import { canonicalSha256 } from '../../../engine/canonical_json.ts';
import { encryptionKeys } from '../../../engine/secrets/index.ts';
import { type Connected, connectTokens, KEYS, openRotatingGithub } from '../../engine/integrations/support.ts';
import { authorizationEpoch, updateOrganization } from '../../support/fixtures.ts';
import { readIntegration, tool } from '../../support/integration_fixtures.ts';
import { openToolServer, SEARCH } from '../../support/tool_server.ts';
import { type JsonObject, openSql, transition } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { addJob, openJobs, queued } from '../support.ts';

const sql = await openSql(t);
const github = await openRotatingGithub(t);
const jobs = await openJobs(t, sql.url, {
  ENCRYPTION_KEYS: KEYS,
  GITHUB_CLIENT_ID: 'github-client',
  GITHUB_CLIENT_SECRET: 'github-secret',
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify(github.origins),
});
const keys = encryptionKeys.parse(KEYS);
const later = () => new Date(Date.now() + 3_600_000).toISOString();

/** A connection that is due, whose access token is this one. */
async function dueConnection(accessToken: string, facts: JsonObject = {}): Promise<Connected> {
  const tokens = { access_token: accessToken };
  const connected = await connectTokens(sql, tokens, { keys, facts: { tokenExpiresAt: later(), ...facts } });
  await makeDue(connected);
  return connected;
}

async function makeDue({ target }: Connected): Promise<void> {
  await sql.owner.query(
    `update app.integration_connections set check_due_at = now() - interval '1 minute', checked_at = null
     where integration_id = $1`,
    [target.integrationId],
  );
}

async function check(): Promise<void> {
  await addJob(sql.owner, 'integrations__check', {}, 'integrations__check');
  await until('the check has run', async () => (await queued(sql.owner, 'integrations__check')).length === 0);
}

/** What is recorded of it, and in how many minutes it is due. */
async function recorded({ target }: Connected) {
  const { rows } = await sql.owner.query(
    `select reauthorization_reason as reason, degraded_code as code, degraded_at is not null as degraded,
       checked_at is not null as checked,
       extract(epoch from check_due_at - now())::integer / 60 as minutes
     from app.integration_connections where integration_id = $1`,
    [target.integrationId],
  );
  return rows[0];
}

t.test(
  'one that works is looked at a day later, spread out, and one that was degraded is ready again',
  async (test) => {
    const [well, ill] = [await dueConnection('access-0'), await dueConnection('access-0')];
    await sql.owner.query(
      `update app.integration_connections set degraded_at = now(), degraded_code = 'provider_unavailable'
       where integration_id = $1`,
      [ill.target.integrationId],
    );
    await check();
    for (const one of [well, ill]) {
      const { minutes, ...facts } = await recorded(one);
      test.same(facts, { reason: null, code: null, degraded: false, checked: true });
      test.ok(minutes > 19 * 60 && minutes < 29 * 60, `in ${minutes} minutes`);
    }
    const calls = github.server.calls.length;
    await check();
    test.equal(github.server.calls.length, calls, 'nothing is due, so that nothing is asked');
  },
);

t.test(
  'a provider that is away makes it degraded until the next look soon, and a refused token ends it',
  async (test) => {
    const away = await dueConnection('access-0');
    github.state.isDown = true;
    await check();
    github.state.isDown = false;
    const { minutes, ...facts } = await recorded(away);
    test.match(facts, { reason: null, code: 'provider_unavailable', degraded: true, checked: true });
    test.ok(minutes >= 11 && minutes <= 19, `in ${minutes} minutes`);
    await makeDue(away);
    const refused = await dueConnection('another');
    await check();
    test.match(await recorded(away), { reason: null, code: null, degraded: false });
    test.match(await recorded(refused), { reason: 'revoked', degraded: false });
    const calls = github.server.calls.length;
    await check();
    test.equal(github.server.calls.length, calls);
  },
);

t.test('a provider that refuses to say whose the connection is makes it degraded', async (test) => {
  const refused = await dueConnection('access-0');
  github.state.isForbidden = true;
  await check();
  github.state.isForbidden = false;
  test.match(await recorded(refused), { reason: null, code: 'provider_failed', degraded: true, checked: true });
});

t.test('what may not be asked stays what it was, and is looked at later', async (test) => {
  const forbidden = await dueConnection('access-0');
  await updateOrganization(sql.api, forbidden.org, { constraints: { allowedIntegrations: ['stripe'] } });
  const blocked = await dueConnection('access-0');
  await updateOrganization(sql.api, blocked.org, { constraints: { blockedDomains: ['github.com'] } });
  const gone = await dueConnection('access-0');
  await sql.owner.query('delete from app.integrations where id = $1', [gone.target.integrationId]);
  const lost = await connectTokens(
    sql,
    { access_token: 'access-0' },
    {
      keys: encryptionKeys.parse(`lost:${Buffer.alloc(32, 9).toString('base64')}`),
      facts: { tokenExpiresAt: later() },
    },
  );
  await makeDue(lost);
  const calls = github.server.calls.length;
  await check();
  test.equal(github.server.calls.length, calls);
  for (const one of [forbidden, blocked]) {
    const { minutes, ...facts } = await recorded(one);
    test.same(facts, { reason: null, code: null, degraded: false, checked: false });
    test.ok(minutes >= 58 && minutes <= 60, `in ${minutes} minutes`);
  }
  test.match(await recorded(lost), { reason: 'key_lost' });
  test.notOk(jobs.logged.some(({ msg }) => msg === 'a connection was not checked'));
});

t.test('a server is asked for its tools too, and those that it has changed are off', async (test) => {
  const server = await openToolServer(test);
  const facts = { kind: 'none', subjectHash: null, tokenExpiresAt: null };
  const tools = [tool('search', { effect: 'write', risk: 'external', digest: canonicalSha256(SEARCH) })];
  const connected = await connectTokens(sql, {}, { keys, provider: 'mcp', facts, tools });
  const { org, target } = connected;
  const at = { organizationId: org.organizationId, integrationRef: target.integrationId };
  const { settings } = server;
  await transition(sql.api, 'integration_settings_put', {
    ...at,
    connectionRevision: 1,
    settings,
    disconnect: false,
    forgetTools: false,
  });
  const change = { tools: ['search'], effects: { search: 'read' } };
  await transition(sql.api, 'integration_tools_put', { ...at, change });
  const looked = async () => {
    await makeDue(connected);
    await check();
    return readIntegration(sql, org, target.integrationId);
  };
  const same = await looked();
  test.match(same, { readiness: 'ready', discovery_status: 'ok', tools: [{ enabled: true, effect: 'read' }] });
  const epoch = await authorizationEpoch(sql, org.organizationId);
  server.state.isDown = true;
  test.match(await looked(), { readiness: 'degraded', tools: [{ enabled: true }] }, 'it has said nothing of them');
  server.state.isDown = false;
  server.state.tools = [
    { ...SEARCH, description: 'Does more.' },
    { ...SEARCH, name: 'send' },
  ];
  const changed = await looked();
  test.equal(changed.readiness, 'ready');
  test.match(changed.tools, [
    { key: 'search', enabled: false, effect: 'write', description: 'Does more.' },
    { key: 'send', enabled: false },
  ]);
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch + 1);
  test.equal(server.called(), 0);
});

t.test('no log of all these checks names an account', async (test) => {
  const { rows } = await sql.owner.query('select account_label from app.integration_connections');
  const labels = ['octocat', ...new Set(rows.map(({ account_label: label }) => String(label)))];
  test.ok(labels.length > 1 && jobs.logged.length > 0);
  for (const label of labels) test.notMatch(JSON.stringify(jobs.logged), label);
});
