import { randomUUID } from 'node:crypto';
import t from 'tap';
import { begin } from '../../../scripts/command/set_up.ts';
import { ownerPath } from '../../../support/api_fixtures.ts';
import { endLease } from '../../../support/fixtures.ts';
import { openGateway, REFUND } from '../../../support/gateway_world.ts';

const NOWHERE = 'http://127.0.0.1:1';
const world = await openGateway(t);
const { app, sql } = world;

async function agent() {
  const by = await world.caller();
  const environment = {
    BUSINESS_RUNNER_URL: app.url.replace(/\/$/, ''),
    BUSINESS_RUNNER_TOKEN: by.run.executionToken,
    BUSINESS_RUNNER_ORGANIZATION: by.org.organizationId,
  };
  return { by, environment, call: (...argv: string[]) => begin(environment, ...argv).ended };
}

t.test('69 where the API does not respond', async (t) => {
  const { environment } = await agent();
  const away = { ...environment, BUSINESS_RUNNER_URL: NOWHERE };
  const { BUSINESS_RUNNER_TOKEN: _, ...owner } = away;
  for (const [of, ...argv] of [
    [away, 'git', 'shop', 'acme/shop'],
    [away, 'call', 'shop', REFUND],
    [away, 'actions'],
    [owner, 'actions', 'list'],
    [owner, 'context'],
    [owner, 'context', 'show', 'facts.json'],
  ] as const) {
    t.match(await begin(of, ...argv).ended, { status: 69, out: '', err: /responds at/ }, argv.join(' '));
  }
});

t.test('77 without the token of a run, and where the run is over', async (t) => {
  const { by, environment, call } = await agent();
  const nobody = { ...environment, BUSINESS_RUNNER_TOKEN: '' };
  for (const argv of [['git', 'shop', 'acme/shop'], ['git-credential', 'shop', 'get'], ['mcp']]) {
    t.match(await begin(nobody, ...argv).ended, { status: 77, out: '', err: /is for agents in a run/ }, argv.join(' '));
  }
  await endLease(sql, by.run);
  t.match(await call('git', 'shop', 'acme/shop'), { status: 77, out: '' });
  t.match(await call('actions'), { status: 77, out: '' });
});

t.test(
  'a call that is repeated by its name ends with 3 while its action waits, and 2 when it was rejected',
  async (t) => {
    const { by, call } = await agent();
    const args = JSON.stringify({ charge: 'ch_1', amount: 500, reason: 'duplicate' });
    const named = ['call', 'shop', REFUND, '--json', args, '--invocation', randomUUID()];
    const proposed = await call(...named);
    t.equal(proposed.status, 3, proposed.err);
    const { id } = JSON.parse(proposed.out).action;
    await app.owner.post(ownerPath(by.org, `/actions/${id}/reject`), { reason: 'Too much' });
    const over = await call(...named);
    t.equal(over.status, 2, over.err);
    t.match(JSON.parse(over.out), { kind: 'action', action: { id, status: 'rejected' } });
  },
);
