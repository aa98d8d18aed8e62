import { randomUUID } from 'node:crypto';
import t from 'tap';
import { newIntegrationFacts } from '../../../engine/integrations/index.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';
import { json, openServer } from '../../engine/providers/support.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../support/api_fixtures.ts';
import { endLease } from '../../support/fixtures.ts';
import { CHARGES, openGateway } from '../../support/gateway_world.ts';
import { createClient, issuePaths } from '../../support/http.ts';
import { until } from '../../support/wait.ts';
import { createCoder, resolveGit } from '../git/support.ts';

const github = await openServer(t, () => ({ total_count: 9, incomplete_results: true, items: [] }));
const world = await openGateway(t, { origins: { 'https://api.github.com': github.origin } });
const { app, sql, stripe, execute } = world;
const by = await world.caller();
const charges = { tool: CHARGES, arguments: { limit: 2 } };

t.beforeEach(() => {
  stripe.calls.length = 0;
  stripe.faults.before = undefined;
  stripe.faults.charges = undefined;
});

t.test('a read responds with what the provider says, and how to go on', async (t) => {
  const first = expectSuccess(await execute(by, charges));
  t.same(first, {
    kind: 'result',
    data: [
      { id: 'ch_1', amount: 100 },
      { id: 'ch_2', amount: 200 },
    ],
    nextCursor: 'ch_2',
    files: [],
  });
  expectSuccess(await execute(by, { ...charges, cursor: 'ch_2' }));
  t.same(
    stripe.calls.map(({ url }) => url.search),
    ['?limit=2', '?limit=2&starting_after=ch_2'],
  );
  t.equal(stripe.calls[0]?.headers.authorization, 'Bearer rk_test_1');
});

t.test('the credential that a provider repeats is in no result', async (t) => {
  const key = 'rk_test_1';
  const basic = Buffer.from(`${key}:`).toString('base64');
  stripe.faults.charges = {
    data: [{ id: 'ch_1', from: `Bearer ${key}`, [`of_${key}`]: `Basic ${basic}` }],
    has_more: false,
  };
  const { data } = expectSuccess(await execute(by, charges));
  t.match(data, [{ id: 'ch_1', from: `Bearer ${HIDDEN}`, [`of_${HIDDEN}`]: HIDDEN }]);
  t.notMatch(JSON.stringify(data), key);
  t.notMatch(JSON.stringify(data), basic.slice(0, 11));
});

t.test('the same call, many times at once and again, reaches the provider once; another body is refused', async (t) => {
  const id = randomUUID();
  stripe.faults.before = async () => new Promise((resolve) => setTimeout(resolve, 100, false));
  const replies = await Promise.all(Array.from({ length: 20 }, () => execute(by, charges, id)));
  const bodies = [...replies, await execute(by, charges, id)].map((reply) => JSON.stringify(expectSuccess(reply)));
  t.equal(new Set(bodies).size, 1);
  t.equal(stripe.asked(), 1);
  t.equal(refusalOf(await execute(by, { ...charges, timeoutMs: 5 }, id)), '409 state_conflict differs');
});

t.test('an Idempotency-Key is ignored: a repeat is known by its invocation', async (t) => {
  const keyed = (key: string): typeof by.client => {
    const headers = { 'idempotency-key': key };
    return { ...by.client, post: (path, body) => by.client.post(path, body, { headers }) };
  };
  const [id, other] = [randomUUID(), randomUUID()];
  expectSuccess(await execute(by, charges, id, keyed('one')));
  expectSuccess(await execute(by, { ...charges, cursor: 'ch_2' }, other, keyed('one')));
  t.equal(stripe.asked(), 2);
  expectSuccess(await execute(by, charges, id, keyed('two')));
  t.equal(stripe.asked(), 2);
});

t.test('a long result is kept too, and one that is too long says how to ask for less', async (t) => {
  const id = randomUUID();
  stripe.faults.charges = { data: [{ id: 'ch_1', text: 'x'.repeat(200_000) }], has_more: false };
  const first = expectSuccess(await execute(by, charges, id));
  t.same(expectSuccess(await execute(by, charges, id)), first);
  t.equal(stripe.asked(), 1);
  stripe.faults.charges = { data: [{ id: 'ch_1', text: 'x'.repeat(5_300_000) }], has_more: false };
  const reply = await execute(by, charges);
  t.equal(refusalOf(reply), '400 result_too_large result_too_large');
  t.match(reply.body.error.issues?.[0]?.message, /smaller page/);
});

t.test('what a provider does not show to its end is not cut: it says how to ask for less', async (t) => {
  const tool = 'github.issues.search';
  const coder = await createCoder(world, {
    tools: newIntegrationFacts('github').tools,
    policies: ['git.read', 'integrations.read'],
  });
  const { capability } = await resolveGit(world, coder.org, coder.integrationId, coder.run, 'cli');
  const caller = { ...coder, client: app.owner.as(capability) };
  const call = { tool, arguments: { owner: 'acme', repo: 'shop', q: 'x' } };
  const reply = await execute(caller, call);
  t.equal(refusalOf(reply), '400 result_too_large result_too_large');
  t.match(reply.body.error.issues, [{ path: 'arguments', message: /narrow q/ }]);
  t.equal(github.calls.length, 1);
  const far = await execute(caller, { ...call, cursor: '35' });
  t.equal(refusalOf(far), '400 validation_failed invalid_cursor');
  t.match(far.body.error.issues?.[0]?.message, /1,000 results that GitHub shows: narrow/);
});

t.test('wrong arguments are named, and bind nothing', async (t) => {
  const id = randomUUID();
  const reply = await execute(by, { tool: CHARGES, arguments: { limit: 101, customer: '../x', more: 1 } }, id);
  t.equal(reply.status, 400);
  t.same(issuePaths(reply).toSorted(), ['arguments.customer', 'arguments.limit', 'arguments.more']);
  t.equal(refusalOf(await execute(by, { ...charges, cursor: '&x=1' }, id)), '400 validation_failed invalid_cursor');
  t.equal(stripe.asked(), 0);
  expectSuccess(await execute(by, charges, id));
  for (const body of [{}, { tool: CHARGES }, { ...charges, timeoutMs: 60_001 }, { ...charges, other: 1 }]) {
    t.match(refusalOf(await execute(by, body)), /^400 validation_failed/);
  }
  t.match(refusalOf(await execute(by, charges, 'no-uuid')), /^400 validation_failed/);
  t.match(refusalOf(await execute(by, { tool: 'stripe.none', arguments: {} })), /^404 tool_not_found/);
});

t.test('what the provider does not do is said by the codes of the gateway, and asked anew', async (t) => {
  const id = randomUUID();
  const said = (status: number) => {
    stripe.faults.before = (_call, res) => {
      json(res, status, { error: { type: 'planted_secret sentence', code: 'resource_missing' } });
      return true;
    };
  };
  for (const [status, expected] of [
    [400, '502 provider_failed failed'],
    [403, '403 provider_forbidden forbidden'],
    [404, '404 not_found not_found'],
    [500, '503 provider_unavailable unavailable'],
  ] as const) {
    said(status);
    const reply = await execute(by, { ...charges, timeoutMs: 1_500 }, id);
    t.equal(refusalOf(reply), expected);
    t.notMatch(JSON.stringify(reply.body), /planted_secret/);
  }
  stripe.faults.before = undefined;
  expectSuccess(await execute(by, { ...charges, timeoutMs: 1_500 }, id));
});

t.test('a caller that leaves ends the call at the provider', async (t) => {
  const left = Promise.withResolvers<void>();
  stripe.faults.before = (_call, res) => {
    res.on('close', left.resolve);
    return true;
  };
  const abort = new AbortController();
  const url = `${app.url}/internal/cli/integrations/${by.integrationId}/invocations/${randomUUID()}/execute`;
  const headers = { authorization: `Bearer ${by.capability}`, 'content-type': 'application/json' };
  const request = fetch(url, { method: 'POST', headers, body: JSON.stringify(charges), signal: abort.signal });
  await until('the provider is asked', async () => stripe.asked() === 1);
  abort.abort();
  await t.rejects(request);
  await left.promise;
});

t.test('a call takes no longer than it says', async (t) => {
  stripe.faults.before = () => true;
  const begin = Date.now();
  t.match(refusalOf(await execute(by, { ...charges, timeoutMs: 300 })), /^503 provider_unavailable/);
  t.ok(Date.now() - begin < 10_000);
});

t.test(
  'who may not call it: no capability, one of another kind, organization or execution, and one that is over',
  async (t) => {
    const other = await world.caller();
    const sibling = { ...by, integrationId: other.integrationId };
    for (const [client, expected] of [
      [createClient(app.url), '401 agent_unauthorized'],
      [app.owner, '401 agent_unauthorized'],
      [app.owner.as(by.run.executionToken), '401 agent_unauthorized'],
      [app.owner.as('0'.repeat(64)), '401 agent_unauthorized'],
    ] as const) {
      t.equal(refusalOf(await execute(by, charges, randomUUID(), client)), expected);
    }
    t.match(refusalOf(await execute(sibling, charges)), /^401 agent_unauthorized/, 'of another organization');
    t.equal(
      refusalOf(await execute(by, { tool: CHARGES, arguments: { customer: `cus_${by.capability}` } })),
      '400 validation_failed token_found',
    );
    await app.owner.patch(ownerPath(other.org, '/integrations/shop/status'), { status: 'disabled' });
    t.match(refusalOf(await execute(other, charges)), /^409 state_conflict/);
    await endLease(sql, other.run);
    t.match(refusalOf(await execute(other, charges)), /^401 agent_unauthorized/);
  },
);
