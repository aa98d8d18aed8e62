import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { createCoder } from '../../../api/git/support.ts';
import { begin } from '../../../scripts/command/set_up.ts';
import { ownerPath } from '../../../support/api_fixtures.ts';
import { OWNER_TOKEN, SERVICE_TOKEN, startTestApp } from '../../../support/app.ts';
import { endLease } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
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
  const calls = [
    [away, 'git', 'shop', 'acme/shop'],
    [away, 'call', 'shop', REFUND],
    [away, 'actions'],
    [owner, 'actions', 'list'],
    [owner, 'context'],
    [owner, 'context', 'show', 'facts.json'],
  ] as const;
  // Each is tried again before it gives up.
  const ended = await Promise.all(calls.map(([of, ...argv]) => begin(of, ...argv).ended));
  for (const [index, [, ...argv]] of calls.entries()) {
    t.match(ended[index], { status: 69, out: '', err: /responds at/ }, argv.join(' '));
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

t.test('77 where the context is refused', async (t) => {
  const { by } = await agent();
  const { organizationId } = by.org;
  const locked = await startTestApp(t, {
    database: app.database,
    config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } },
  });
  const owner = { BUSINESS_RUNNER_URL: locked.url, BUSINESS_RUNNER_ORGANIZATION: organizationId };
  const as = (token: string) => ({ ...owner, BUSINESS_RUNNER_OWNER_TOKEN: token });
  for (const argv of [['context'], ['context', 'list'], ['context', 'show', 'facts.json']]) {
    t.match(await begin(owner, ...argv).ended, { status: 77, out: '', err: /wants an owner’s token/ }, argv.join(' '));
    t.match(await begin(as(SERVICE_TOKEN), ...argv).ended, { status: 77, out: '', err: /does not take this token/ });
  }
  t.match(await begin(as(OWNER_TOKEN), 'context').ended, { status: 0, out: 'no documents\n' });
});

t.test('69 where git is not on the PATH', async (t) => {
  const { org, integrationId, run } = await createCoder(world);
  const folder = await openFolder(t);
  const environment = {
    BUSINESS_RUNNER_URL: app.url.replace(/\/$/, ''),
    BUSINESS_RUNNER_TOKEN: run.executionToken,
    BUSINESS_RUNNER_ORGANIZATION: org.organizationId,
    PATH: folder,
  };
  const to = path.join(folder, 'shop');
  const ended = await begin(environment, 'git', integrationId, 'acme/shop', to).ended;
  t.match(ended, { status: 69, out: '', err: 'business-runner: git cannot be started (ENOENT)\n' });
  // A git that fails is another thing.
  await writeFile(path.join(folder, 'git'), '#!/bin/sh\nexit 128\n', { mode: 0o755 });
  const failed = await begin(environment, 'git', integrationId, 'acme/shop', to).ended;
  t.match(failed, { status: 1, out: '', err: /git clone ended with exit status 128/ });
});

t.test(
  'a call that is repeated by its name ends with 3 while its action waits, and then by how that ended',
  async (t) => {
    const { by, call } = await agent();
    async function proposed(amount: number) {
      const args = JSON.stringify({ charge: 'ch_1', amount });
      const named = ['call', 'shop', REFUND, '--json', args, '--invocation', randomUUID()];
      const first = await call(...named);
      t.equal(first.status, 3, first.err);
      return { id: JSON.parse(first.out).action.id, again: () => call(...named) };
    }
    const rejected = await proposed(500);
    await app.owner.post(ownerPath(by.org, `/actions/${rejected.id}/reject`), { reason: 'Too much' });
    const over = await rejected.again();
    t.equal(over.status, 2, over.err);
    t.match(JSON.parse(over.out), { kind: 'action', action: { id: rejected.id, status: 'rejected' } });

    const done = await proposed(400);
    await world.approve(by, done.id);
    t.equal((await done.again()).status, 3, 'it is approved, and not done yet');
    await world.runAction(by, done.id);
    const succeeded = await done.again();
    t.equal(succeeded.status, 0, succeeded.err);
    t.match(JSON.parse(succeeded.out), { action: { id: done.id, status: 'succeeded' } });
  },
);
