import t from 'tap';
import { KEYS } from '../../engine/integrations/support.ts';
import { makeOverdue } from '../../support/action_fixtures.ts';
import { expectSuccess } from '../../support/api_fixtures.ts';
import { type Caller, openGateway, REFUND } from '../../support/gateway_world.ts';
import { until } from '../../support/wait.ts';
import { openJobs } from '../support.ts';

const world = await openGateway(t);
const { stripe, sql } = world;
await openJobs(t, world.app.database.url, {
  ENCRYPTION_KEYS: KEYS,
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify({ 'https://api.stripe.com': stripe.origin }),
});

async function propose(by: Caller, charge: string): Promise<string> {
  const { action } = expectSuccess(await world.execute(by, { tool: REFUND, arguments: { charge } }));
  return action?.id ?? '';
}

const ended = (by: Caller, id: string, status: string) =>
  until(`the action is ${status}`, async () => (await world.action(by, id)).status === status);

t.test('an approval is carried out, and so is what needs none', async (t) => {
  const by = await world.caller();
  const id = await propose(by, 'ch_1');
  await world.approve(by, id);
  await ended(by, id, 'succeeded');
  const free = await world.caller({ constraints: { approvalRequiredForRisk: [] } });
  await ended(free, await propose(free, 'ch_2'), 'succeeded');
  t.equal(stripe.sent(), 2);
});

t.test('organizations whose provider is slow hold up no other one, and few of theirs are sent at a time', async (t) => {
  const free = { constraints: { approvalRequiredForRisk: [] } };
  const slow = await Promise.all(Array.from({ length: 8 }, () => world.caller(free)));
  const quick = await world.caller(free);
  const opened = Promise.withResolvers<boolean>();
  let sent = 0;
  stripe.faults.before = (call) => {
    if (!call.body.includes('ch_slow')) return false;
    sent += 1;
    return opened.promise;
  };
  const ids: (readonly [Caller, string])[] = [];
  for (const by of slow)
    for (let number = 0; number < 4; number += 1) ids.push([by, await propose(by, `ch_slow${number}`)]);
  await until('each has two under way', () => sent === 2 * slow.length);
  await ended(quick, await propose(quick, 'ch_quick'), 'succeeded');
  t.equal(sent, 2 * slow.length, 'no more at a time');
  stripe.faults.before = undefined;
  opened.resolve(false);
  for (const [by, id] of ids) await ended(by, id, 'succeeded');
});

t.test('what nobody decides about expires', async () => {
  const by = await world.caller();
  const id = await propose(by, 'ch_1');
  await makeOverdue(sql, id);
  await ended(by, id, 'expired');
});
