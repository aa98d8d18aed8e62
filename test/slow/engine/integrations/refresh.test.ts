import t from 'tap';
import { Problem } from '../../../../engine/db/problem.ts';
import {
  type ConnectionTarget,
  healthOf,
  integrationProblem,
  type OpenConnection,
  readIntegration as readStoredIntegration,
  revokeGrant,
  useConnection,
} from '../../../../engine/integrations/index.ts';
import { tokensMoved } from '../../../../engine/integrations/refresh.ts';
import { github } from '../../../../engine/providers/github/index.ts';
import { OAuthError } from '../../../../engine/providers/oauth/index.ts';
import { ProviderError, type ProviderReason } from '../../../../engine/providers/outgoing/index.ts';
import {
  type Connected,
  connectTokens,
  integrationConfig,
  openRotatingGithub,
  openTestIntegrations,
  startProcess,
  type TestIntegrations,
} from '../../../engine/integrations/support.ts';
import { openAs } from '../../../support/database.ts';
import { updateOrganization } from '../../../support/fixtures.ts';
import { readIntegration } from '../../../support/integration_fixtures.ts';
import { openSession, openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);
const db = openAs(sql.url, { role: 'runner_api', size: 8, applicationName: 'test api' });
t.teardown(() => db.end());
const keys = integrationConfig({ origins: {} }).integrations.encryptionKeys;
const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString();
const FIRST = { access_token: 'access-0', refresh_token: 'refresh-0' };

const use = (integrations: TestIntegrations, target: ConnectionTarget, signal?: AbortSignal) =>
  useConnection(integrations, target, ({ provider, context, access }) => provider.verify(context, access), { signal });

async function problemOf(work: Promise<unknown>): Promise<Problem> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => integrationProblem(thrown),
  );
  if (error instanceof Problem) return error;
  throw new Error(`no refusal: ${error}`, { cause: error });
}

async function readiness({ org, target }: Connected) {
  return (await readIntegration(sql, org, target.integrationId)).readiness;
}

t.test('fifty uses of tokens that are over, by two processes, make one refresh', async (test) => {
  const { state, origins } = await openRotatingGithub(test);
  const connected = await connectTokens(sql, FIRST, { keys });
  const processes = [startProcess(test, sql.url, { origins }), startProcess(test, sql.url, { origins })];
  const results = await Promise.all(processes.map((one) => one.use(connected.target, 25)));
  test.same(
    results.flatMap(({ errors }) => errors),
    [],
  );
  test.equal(results.flatMap(({ labels }) => labels).length, 50);
  test.equal(state.refreshes, 1);
  test.equal(state.refused, 0);
  test.equal(await readiness(connected), 'ready');
});

t.test('of a disabled integration, tokens that are over are exchanged for its owner alone', async (test) => {
  const { state, origins } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const { target } = await connectTokens(sql, FIRST, { keys });
  await sql.owner.query("update app.integrations set status = 'disabled' where id = $1", [target.integrationId]);
  const refused = await problemOf(use(integrations, target));
  test.match(refused, { code: 'integration_not_ready', issues: [{ code: 'disabled' }] });
  test.equal(state.refreshes, 0);
  const verify = ({ provider, context, access }: OpenConnection) => provider.verify(context, access);
  const looked = await useConnection(integrations, target, verify, { evenDisabled: true });
  test.match(looked, { label: 'octocat' });
  test.equal(state.refreshes, 1);
});

t.test('a token that ends before its time is exchanged, and what it was refused for is done', async (test) => {
  const { state, origins } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const connected = await connectTokens(sql, FIRST, { keys, facts: { tokenExpiresAt: tomorrow() } });
  await use(integrations, connected.target);
  test.equal(state.refreshes, 0);
  state.accessToken = 'another';
  test.match(await use(integrations, connected.target), { label: 'octocat' });
  test.equal(state.refreshes, 1);
});

for (const { what, saved } of [
  { what: 'whose statement Postgres carries out all the same', saved: true },
  { what: 'with its connection to Postgres', saved: false },
]) {
  t.test(`a process that dies between the provider’s response and the commit, ${what}`, async (test) => {
    const { state, origins, hooks } = await openRotatingGithub(test);
    const integrations = openTestIntegrations(test, db, { origins });
    const connected = await connectTokens(sql, FIRST, { keys });
    const { integrationId } = connected.target;
    const session = await openSession(test, sql, 'owner');
    // The lease is taken by now; saving waits for this lock.
    hooks.beforeReply = async () => {
      await session.begin();
      await session.query('select 1 from app.integrations where id = $1 for update', [integrationId]);
    };
    const process = startProcess(test, sql.url, { origins });
    const answer = process.use(connected.target, 1);
    answer.catch(() => undefined);
    const pid = await until('the process saves its tokens', async () => {
      const { rows } = await sql.owner.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and query like '%integration_tokens_rotate%'
           and cardinality(pg_blocking_pids(pid)) > 0 and application_name = 'test process'`,
      );
      return rows[0]?.pid;
    });
    hooks.beforeReply = undefined;
    await process.kill();
    if (!saved) await sql.owner.query('select pg_terminate_backend($1, 10000)', [pid]);
    await session.commit();
    if (saved) {
      await until('Postgres has saved them', async () => {
        const row = await readIntegration(sql, connected.org, integrationId);
        const { rows } = await sql.owner.query(
          'select 1 from app.integration_connections where integration_id = $1 and token_version = 2',
          [row.id],
        );
        return rows.length === 1;
      });
      test.match(await use(integrations, connected.target), { label: 'octocat' });
      test.equal(state.refreshes, 1);
      test.equal(await readiness(connected), 'ready');
      return;
    }
    test.equal(await readiness(connected), 'ready', 'nobody has tried yet');
    await sql.owner.query(
      'update app.integration_connections set refresh_lease_expires_at = now() where integration_id = $1',
      [integrationId],
    );
    test.match(await problemOf(use(integrations, connected.target)), {
      code: 'integration_not_ready',
      issues: [{ code: 'needs_reauthorization' }],
    });
    test.equal(state.refused, 1);
    test.equal(await readiness(connected), 'needs_reauthorization');
  });
}

t.test('saving goes on while Postgres ends its connections', async (test) => {
  const { state, origins, hooks } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const connected = await connectTokens(sql, FIRST, { keys });
  hooks.beforeReply = () =>
    sql.owner.query(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where datname = current_database() and application_name = 'test api'`,
    );
  test.match(await use(integrations, connected.target), { label: 'octocat' });
  test.equal(state.refreshes, 1);
});

t.test('who asks for the tokens may leave; the refresh goes on for the others', async (test) => {
  const { state, origins, hooks } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const connected = await connectTokens(sql, FIRST, { keys });
  const leaves = new AbortController();
  const asked = Promise.withResolvers<void>();
  const replies = Promise.withResolvers<void>();
  hooks.beforeReply = () => {
    asked.resolve();
    return replies.promise;
  };
  const left = use(integrations, connected.target, leaves.signal);
  left.catch(() => undefined);
  await asked.promise;
  const stays = use(integrations, connected.target);
  leaves.abort(new Error('left'));
  await test.rejects(left, { message: 'left' });
  replies.resolve();
  test.match(await stays, { label: 'octocat' });
  test.equal(state.refreshes, 1);
});

t.test('a refusal of old tokens says nothing, and one of the newest that they have to be given again', async (test) => {
  const { state, origins, hooks } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const connected = await connectTokens(sql, { ...FIRST, refresh_token: 'old' }, { keys });
  const problem = await problemOf(use(integrations, connected.target));
  test.match(problem, { status: 409, code: 'integration_not_ready', issues: [{ code: 'needs_reauthorization' }] });
  test.equal(await readiness(connected), 'needs_reauthorization');
  test.equal(state.refreshes, 0);
  hooks.beforeReply = undefined;
  const again = state.refused;
  await problemOf(use(integrations, connected.target));
  test.equal(state.refused, again, 'the provider is not asked again');
});

t.test('without a refresh token what is over has to be authorized again', async (test) => {
  const { origins, server } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const connected = await connectTokens(sql, { access_token: 'access-0' }, { keys });
  test.match(await problemOf(use(integrations, connected.target)), { code: 'integration_not_ready' });
  test.equal(await readiness(connected), 'needs_reauthorization');
  test.equal(server.calls.length, 0);
});

t.test('a provider that is down degrades the connection, which recovers by itself', async (test) => {
  const { origins, state } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const connected = await connectTokens(sql, FIRST, { keys });
  state.isDown = true;
  test.match(await problemOf(use(integrations, connected.target)), { status: 503, code: 'provider_unavailable' });
  test.equal(await readiness(connected), 'degraded');
  state.isDown = false;
  await use(integrations, connected.target);
  test.equal(state.refreshes, 1);
  test.equal(await readiness(connected), 'ready');
});

t.test('a refresh that cannot be sent says nothing of the provider, and gives its lease back', async (test) => {
  for (const kind of ['blocked', 'deployment_setting']) {
    const { origins, server } = await openRotatingGithub(test);
    const integrations = openTestIntegrations(test, db, { origins });
    const connected = await connectTokens(sql, FIRST, { keys });
    const { target } = connected;
    if (kind === 'blocked') {
      await updateOrganization(sql.api, connected.org, { constraints: { blockedDomains: ['github.com'] } });
    }
    const { oauthClients } = integrations.settings;
    const clients = kind === 'blocked' ? oauthClients : { ...oauthClients, github: undefined };
    const settings = { ...integrations.settings, oauthClients: clients };
    test.match(await problemOf(use({ ...integrations, settings }, target)), { issues: [{ code: kind }] });
    test.equal(await readiness(connected), 'ready');
    const { rows } = await sql.owner.query(
      'select 1 from app.integration_connections where integration_id = $1 and refresh_lease_id is not null',
      [target.integrationId],
    );
    test.same(rows, [], kind);
    test.equal(server.calls.length, 0);
  }
});

t.test('a failure says of the connection what it is at fault for', (test) => {
  const facts = { retryNotBefore: new Date(0) };
  const failure = (reason: ProviderReason, isOurs = false) =>
    new ProviderError('github', reason, 'It failed.', { ...facts, isOurs });
  for (const reason of ['unavailable', 'rate_limited'] as const) {
    const health = { state: 'provider_unavailable', ...facts };
    test.same(healthOf(failure(reason), 'call'), health);
    test.same(healthOf(failure(reason), 'check'), health);
    test.same(healthOf(failure(reason, true), 'check'), { state: 'not_asked', ...facts });
  }
  for (const error of [failure('forbidden'), failure('failed'), new OAuthError('client_refused', 'Refused.')]) {
    test.same(healthOf(error, 'call'), { state: 'not_asked' });
    test.same(healthOf(error, 'check'), { state: 'provider_failed' });
  }
  test.same(healthOf(tokensMoved(github), 'check'), { state: 'not_asked', retryNotBefore: undefined });
  test.same(healthOf(new Error('ours'), 'check'), { state: 'not_asked' });
  test.end();
});

t.test('a call that is refused says nothing of its connection', async (test) => {
  const { origins, state } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const connected = await connectTokens(sql, FIRST, { keys, facts: { tokenExpiresAt: tomorrow() } });
  state.isForbidden = true;
  test.match(await problemOf(use(integrations, connected.target)), { code: 'provider_failed' });
  test.equal(await readiness(connected), 'ready');
});

t.test('a key that is gone makes its connections ask for their credentials again', async (test) => {
  const { origins } = await openRotatingGithub(test);
  const other = `k2:${Buffer.alloc(32, 2).toString('base64')}`;
  const connected = await connectTokens(sql, FIRST, { keys });
  const noKeys = openTestIntegrations(test, db, { origins, keys: other });
  test.match(await problemOf(use(noKeys, connected.target)), { code: 'integration_not_ready' });
  test.equal(await readiness(connected), 'needs_reauthorization');
  test.notMatch(noKeys.logged.join(''), /access-0|refresh-0/);
});

t.test('what was disconnected, disabled or is another tenant’s is not used', async (test) => {
  const { origins, server } = await openRotatingGithub(test);
  const integrations = openTestIntegrations(test, db, { origins });
  const connected = await connectTokens(sql, FIRST, { keys });
  const foreign = await connectTokens(sql, FIRST, { keys });
  const { organizationId } = foreign.target;
  test.match(await problemOf(use(integrations, { ...connected.target, organizationId })), { status: 404 });
  test.match(await problemOf(use(integrations, { ...connected.target, revision: 2 })), {
    code: 'integration_conflict',
  });
  await sql.owner.query("update app.integrations set status = 'disabled' where id = $1", [
    connected.target.integrationId,
  ]);
  test.match(await problemOf(use(integrations, connected.target)), { issues: [{ code: 'disabled' }] });
  test.equal(server.calls.length, 0);
});

for (const { what, refreshToken, accessToken, isOver, revoked, grants } of [
  {
    what: 'a token that is over is exchanged first',
    refreshToken: 'refresh-0',
    isOver: true,
    revoked: true,
    grants: 0,
  },
  { what: 'over, and its refresh token refused', refreshToken: 'dead', isOver: true, revoked: false, grants: 1 },
  { what: 'over, without a refresh token', isOver: true, revoked: false, grants: 1 },
  { what: 'one that is good', isOver: false, revoked: true, grants: 0 },
  { what: 'one that was revoked before', accessToken: 'another', isOver: false, revoked: true, grants: 1 },
]) {
  t.test(`a grant of GitHub is revoked where it really is: ${what}`, async (test) => {
    const { state, origins } = await openRotatingGithub(test);
    const integrations = openTestIntegrations(test, db, { origins });
    const known = accessToken ?? (isOver ? 'over' : 'access-0');
    const tokens = { access_token: known, ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }) };
    const facts = { grantHash: '7'.repeat(64), ...(isOver ? {} : { tokenExpiresAt: tomorrow() }) };
    const { target } = await connectTokens(sql, tokens, { keys, facts });
    const { organizationId, integrationId: integrationRef } = target;
    const integration = await readStoredIntegration(integrations, { organizationId, integrationRef });
    test.equal((await revokeGrant(integrations, integration)).revoked, revoked);
    test.equal(state.grants, grants);
  });
}
