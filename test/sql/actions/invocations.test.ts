import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createProposer, createSibling, type Proposer, proposeAction, renewed } from '../../support/action_fixtures.ts';
import { createTestOrganization, endLease, sha256 } from '../../support/fixtures.ts';
import { allow, READ, WRITE } from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };
const conflict = (reason: string) => ({ status: 409, code: 'state_conflict', reason });

/** The calls of one invocation, by the process that `leaseId` stands for. */
function invocation(by: Proposer, invocationId: string, leaseId: string = randomUUID()) {
  const place = { organizationId: by.org.organizationId, integrationId: by.integration.id, invocationId };
  const asCaller = { ...place, tokenHash: sha256(by.token) };
  return {
    leaseId,
    begin: (fields: JsonObject = {}) =>
      transition(sql.api, 'action_invocation_begin', {
        ...asCaller,
        bodySha256: sha256('a'),
        tool: READ.key,
        leaseId,
        seconds: 60,
        ...fields,
      }),
    read: (of: string = leaseId) => transition(sql.api, 'action_invocation_read', { ...asCaller, leaseId: of }),
    finish: (outcome: JsonObject, fields: JsonObject = {}) =>
      transition(sql.api, 'action_invocation_finish', { ...place, runId: by.run.runId, leaseId, outcome, ...fields }),
  };
}

const failure = { status: 502, code: 'provider_failed', message: 'The provider refuses the request.' };

scenario('of many calls with one id one reads, and all have its response', async (test) => {
  const by = await createProposer(sql);
  const calls = Array.from({ length: 20 }, () => invocation(by, 'read'));
  const begun = await Promise.all(calls.map(({ begin }) => begin()));
  const [one] = calls.filter((_, index) => begun[index]?.['state'] === 'begun');
  test.equal(begun.filter(({ state }) => state === 'running').length, 19);
  test.match(begun[0], {
    leaseId: one?.leaseId,
    execution: { runId: by.run.runId },
    integration: { key: by.integration.key },
    tool: { key: READ.key, effect: 'read', inputSchema: { type: 'object' } },
  });
  test.match(await calls[0]?.read(one?.leaseId), { state: 'running' });
  test.same(await one?.finish({ response: '{"b":1,"a":2}' }), { finished: true });
  test.same(await one?.finish({ response: '{}' }), { finished: false }, 'the first response counts');
  const responded = { state: 'responded', response: '{"b":1,"a":2}' };
  test.match(await calls[0]?.read(one?.leaseId), responded);
  test.match(await invocation(by, 'read').begin(), responded);
  test.match(await refusal(invocation(by, 'read').begin({ bodySha256: sha256('b') })), conflict('differs'));
  test.match(await refusal(proposeAction(sql.api, by, { invocationId: 'read' })), conflict('differs'));
});

scenario('a long response is named by where it lies', async (test) => {
  const by = await createProposer(sql);
  const one = invocation(by, 'long');
  await one.begin();
  await one.finish({ responseKey: 'organizations/x' });
  test.match(await invocation(by, 'long').begin(), {
    state: 'responded',
    response: null,
    responseKey: 'organizations/x',
  });
});

scenario('a failure is for those who waited; the next call begins anew', async (test) => {
  const by = await createProposer(sql);
  const [one, other] = [invocation(by, 'fails'), invocation(by, 'fails')];
  await one.begin();
  test.match(await other.begin(), { state: 'running', leaseId: one.leaseId });
  await one.finish({ failure });
  test.match(await other.read(one.leaseId), { state: 'failed', failure });
  test.match(await other.begin(), { state: 'begun' });
  test.match(await one.read(), { state: 'over' }, 'of its own lease there is nothing any more');
  test.same(await one.finish({ response: '1' }), { finished: false }, 'it has lost the lease');
});

scenario('refused arguments bind nothing', async (test) => {
  const by = await createProposer(sql);
  const one = invocation(by, 'wrong');
  await one.begin();
  test.same(await one.finish({}), { finished: true });
  test.match(await one.read(), { state: 'over' });
  test.match(await one.begin({ bodySha256: sha256('mended') }), { state: 'begun' });
});

scenario('a lease whose process is gone is anybody’s', async (test) => {
  const by = await createProposer(sql);
  const [gone, next] = [invocation(by, 'crash'), invocation(by, 'crash')];
  await gone.begin();
  await sql.owner.query(`update app.action_invocations set lease_expires_at = now() where lease_id = $1`, [
    gone.leaseId,
  ]);
  test.match(await next.read(gone.leaseId), { state: 'over' });
  test.match(await next.begin(), { state: 'begun' });
  test.same(await gone.finish({ response: '1' }), { finished: false });
  test.same(await next.finish({ response: '2' }), { finished: true });
});

scenario('a write binds nothing here; a tool that is not there, or not allowed, is refused', async (test) => {
  const by = await createProposer(sql);
  test.match(await invocation(by, 'write').begin({ tool: WRITE.key }), { state: 'write', tool: { effect: 'write' } });
  const { rows } = await sql.owner.query('select from app.action_invocations where run_id = $1', [by.run.runId]);
  test.equal(rows.length, 0);
  test.match(await refusal(invocation(by, 'none').begin({ tool: 'none' })), { status: 404, code: 'tool_not_found' });
});

scenario('a tool whose effect its owner changed takes another name', async (test) => {
  const by = await createProposer(sql);
  const read = invocation(by, 'read');
  await read.begin();
  await read.finish({ failure });
  const body = { bodySha256: sha256('a') };
  await proposeAction(sql.api, by, { invocationId: 'write', tool: WRITE.key, ...body });
  const { organizationId } = by.org;
  await sql.owner.query(
    `update app.integration_tools set effect = case effect when 'read' then 'write' else 'read' end
     where organization_id = $1 and integration_id = $2`,
    [organizationId, by.integration.id],
  );
  const again = await renewed(sql, by);
  test.match(await invocation(again, 'read').begin(), { state: 'write' });
  const proposed = proposeAction(sql.api, again, { invocationId: 'read', tool: READ.key, ...body });
  test.match(await refusal(proposed), conflict('differs'));
  test.match(await refusal(invocation(again, 'write').begin({ tool: WRITE.key })), conflict('differs'));
});

scenario('a profile without the policy for reads reads nothing', async (test) => {
  const by = await createProposer(sql);
  await allow(sql, by.org, 'integrations.propose');
  test.match(await refusal(invocation(by, 'policy').begin()), conflict('stale_epoch'));
});

scenario('a strange token, another execution, and one that is over', async (test) => {
  const by = await createProposer(sql);
  const one = invocation(by, 'mine');
  await one.begin();
  await one.finish({ response: '1' });
  const sibling = await createSibling(sql, by);
  test.match(await invocation(sibling, 'mine').begin(), { state: 'begun' }, 'each execution has names of its own');
  const foreign = await createProposer(sql);
  test.match(await refusal(invocation({ ...by, org: foreign.org }, 'mine').begin()), unauthorized);
  test.match(await refusal(invocation({ ...by, token: randomUUID() }, 'mine').begin()), unauthorized);
  test.match(await refusal(invocation({ ...by, token: foreign.token }, 'mine').read(one.leaseId)), unauthorized);
  const elsewhere = { organizationId: (await createTestOrganization(sql)).organizationId };
  test.same(await invocation(by, 'mine').finish({ response: '2' }, elsewhere), { finished: false });
  await endLease(sql, by.run);
  test.match(await refusal(one.begin()), unauthorized);
  test.match(await refusal(one.read()), unauthorized);
});
