import t from 'tap';
import { makeTask, ownerPath, runTask, sqlOf, workerOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createChat, createChatOrganization, send } from '../../support/chat_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { createAsking } from '../../support/inbox_fixtures.ts';
import { until } from '../../support/wait.ts';

const TOKEN = 'metrics-token-of-the-tests-0123456789';
const app = await startTestApp(t);
const sql = sqlOf(app);

t.test('metrics take a token of METRICS_TOKENS, and no other', async (t) => {
  const { owner, service } = await startTestApp(t, { database: app.database, config: { metricsTokens: [TOKEN] } });
  for (const client of [owner, service, owner.as(`${TOKEN}x`)]) {
    const refused = await client.get('/metrics');
    t.match(refused, { status: 401, code: 'metrics_unauthorized' });
    t.match(refused.headers.get('www-authenticate'), /^Bearer /);
  }
  t.equal((await owner.as(TOKEN).fetch('/metrics')).status, 200);
  const asOwner = await owner.as(TOKEN).post('/internal/run-requests/pull', { workerId: 'w', limit: 1 });
  t.match(asOwner, { status: 401 }, 'it opens nothing else');
});

t.test('without tokens they are for this machine: not by way of a proxy', async (t) => {
  t.equal((await app.owner.fetch('/metrics')).status, 200);
  const forwarded = await app.owner.get('/metrics', { headers: { 'x-forwarded-for': '203.0.113.9' } });
  t.match(forwarded, { status: 401, code: 'metrics_unauthorized', body: { message: /METRICS_TOKENS/ } });
});

t.test('metrics tell how runs end, and what people leave open', async (t) => {
  const org = await createTestOrganization(sql);
  const worker = workerOf(app, await runTask(app, org));
  await worker.complete();
  const failing = workerOf(app, await runTask(app, org));
  await failing.fail();
  await createAsking(sql, org);
  // Read at most every five seconds.
  const text = await until('the items are there', async () => {
    const scraped = await (await app.owner.fetch('/metrics')).text();
    return scraped.includes('runner_inbox_items_open{kind="question"} 1\n') && scraped;
  });
  t.match(text, 'runner_runs_ended_total{call="complete",outcome="succeeded"} 1');
  t.match(text, 'runner_runs_ended_total{call="fail",outcome="failed"} 1');
  t.match(text, /^runner_inbox_items_open\{kind="approval"\} 0$/m);
  t.match(text, /^runner_run_requests_oldest_seconds\{kind="chat"\} 0$/m);
  t.notMatch(text, org.organizationId, 'no label names an organization');
  t.equal((await app.owner.get(ownerPath(org))).status, 200);
});

t.test('metrics tell for each kind how long the oldest request has waited', async (t) => {
  // What they read is kept for five seconds.
  const { owner } = await startTestApp(t, { database: app.database });
  const [chats, tasks] = [await createChatOrganization(sql), await createTestOrganization(sql)];
  await send(sql.api, chats, (await createChat(sql, chats)).id);
  await makeTask(app, tasks);
  const ages = { chat: 7_200, task: 18_000 };
  for (const [kind, seconds] of Object.entries(ages)) {
    const { rowCount } = await sql.owner.query(
      `update app.run_requests set published_at = clock_timestamp() - make_interval(secs => $2)
       where kind = $1 and state = 'published'`,
      [kind, seconds],
    );
    t.equal(rowCount, 1, kind);
  }
  const text = await (await owner.fetch('/metrics')).text();
  for (const [kind, seconds] of Object.entries(ages)) {
    const [, told] =
      new RegExp(`^runner_run_requests_oldest_seconds\\{kind="${kind}"\\} ([\\d.]+)$`, 'm').exec(text) ?? [];
    const beyond = Number(told) - seconds;
    t.ok(beyond >= 0 && beyond < 3_600, `${kind}: ${told}`);
  }
});
