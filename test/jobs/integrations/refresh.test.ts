import t from 'tap';
import { encryptionKeys } from '../../../engine/secrets/index.ts';
import { type Connected, connectTokens, KEYS, openRotatingGithub } from '../../engine/integrations/support.ts';
import { updateOrganization } from '../../support/fixtures.ts';
import { openSql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { addJob, openJobs, queued } from '../support.ts';

const sql = await openSql(t);
const github = await openRotatingGithub(t);
await openJobs(t, sql.url, {
  ENCRYPTION_KEYS: KEYS,
  GITHUB_CLIENT_ID: 'github-client',
  GITHUB_CLIENT_SECRET: 'github-secret',
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify(github.origins),
});
const keys = encryptionKeys.parse(KEYS);

/** A connection that nobody has used for long. */
function unused(refreshToken: string): Promise<Connected> {
  const refreshDueAt = new Date(Date.now() - 60_000).toISOString();
  const tokenExpiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const tokens = { access_token: 'access-0', refresh_token: refreshToken };
  return connectTokens(sql, tokens, { keys, facts: { refreshDueAt, tokenExpiresAt } });
}

async function refresh(): Promise<void> {
  await addJob(sql.owner, 'integrations__refresh', {}, 'integrations__refresh');
  await until('it has run', async () => (await queued(sql.owner, 'integrations__refresh')).length === 0);
}

/** What is recorded of it, and in how many days it is due. */
async function recorded({ target }: Connected) {
  const { rows } = await sql.owner.query(
    `select token_version as version, reauthorization_reason as reason, degraded_code as code,
       round(extract(epoch from refresh_due_at - now()) / 86400)::integer as days
     from app.integration_connections where integration_id = $1`,
    [target.integrationId],
  );
  return rows[0];
}

t.test('tokens that nobody uses are exchanged, and not again for weeks', async (test) => {
  const { refreshToken, refreshes } = github.state;
  const connected = await unused(refreshToken);
  await refresh();
  const { days, ...facts } = await recorded(connected);
  test.same(facts, { version: 2, reason: null, code: null });
  test.ok(days >= 12 && days <= 16, `in ${days} days`);
  await refresh();
  test.equal(github.state.refreshes, refreshes + 1);
});

t.test('tokens that are refused have to be given again, and nobody is asked any more', async (test) => {
  const connected = await unused('dead');
  await refresh();
  test.match(await recorded(connected), { version: 1, reason: 'refresh_refused' });
  const { refused } = github.state;
  await refresh();
  test.equal(github.state.refused, refused);
});

t.test('a provider that is down is asked again later', async (test) => {
  const connected = await unused(github.state.refreshToken);
  github.state.isDown = true;
  await refresh();
  test.match(await recorded(connected), { version: 1, reason: null, code: 'provider_unavailable', days: 0 });
  github.state.isDown = false;
  const { refreshes } = github.state;
  await refresh();
  test.equal(github.state.refreshes, refreshes, 'not at once');
  await sql.owner.query('update app.integration_connections set refresh_due_at = now() where integration_id = $1', [
    connected.target.integrationId,
  ]);
  await refresh();
  test.match(await recorded(connected), { version: 2, code: null });
});

t.test('tokens of what is disabled live on', async (test) => {
  const connected = await unused(github.state.refreshToken);
  await sql.owner.query("update app.integrations set status = 'disabled' where id = $1", [
    connected.target.integrationId,
  ]);
  await refresh();
  test.match(await recorded(connected), { version: 2, reason: null, code: null });
});

t.test('what may not be asked is left, and holds up nobody', async (test) => {
  const connected = await unused(github.state.refreshToken);
  await updateOrganization(sql.api, connected.org, { constraints: { allowedIntegrations: ['stripe'] } });
  await refresh();
  test.match(await recorded(connected), { version: 1, reason: null, code: null, days: 1 });
});
