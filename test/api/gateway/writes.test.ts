import { randomUUID } from 'node:crypto';
import t from 'tap';
import { actionSchema } from '../../../api/actions/schema.ts';
import { executionBody } from '../../../api/gateway/changes.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';
import { expectSuccess, ownerPath, refusalOf, runNext, runTask, workerOf } from '../../support/api_fixtures.ts';
import { completeRun, createSecondProfile, createTestOrganization, runNew, runPlan } from '../../support/fixtures.ts';
import { CHARGES, openGateway, REFUND } from '../../support/gateway_world.ts';
import { issuePaths } from '../../support/http.ts';
import { allow } from '../../support/integration_fixtures.ts';

const world = await openGateway(t);
const { app, sql, stripe, execute, caller } = world;
const refund = { tool: REFUND, arguments: { charge: 'ch_1', amount: 500, reason: 'duplicate' } };
const idOf = (reply: Awaited<ReturnType<typeof execute>>) => expectSuccess(reply).action?.id;

t.test('a write becomes an action that a person can decide about, and the provider hears nothing', async (t) => {
  const by = await caller();
  const id = randomUUID();
  t.match(expectSuccess(await execute(by, { ...refund, timeoutMs: 5_000 }, id)), {
    kind: 'action',
    action: {
      kind: 'provider_write',
      tool: REFUND,
      invocationId: id,
      risk: 'high',
      summary: 'Refund 500 (in minor units of the charge’s currency) of charge ch_1, duplicate',
      arguments: refund.arguments,
      status: 'awaiting_approval',
      requiresApproval: true,
      taskId: by.run.taskId,
      files: [],
    },
  });
  t.equal(stripe.sent(), 0);
});

t.test('a call of more than a mebibyte is 413, which its caller can read', async (t) => {
  const by = await caller();
  for (const mebibytes of [1, 12]) {
    const large = { ...refund, arguments: { charge: 'x'.repeat(mebibytes * 1024 * 1024) } };
    for (let round = 0; round < 3; round += 1) {
      const reply = await execute(by, large);
      t.match(reply, { status: 413, code: 'payload_too_large' }, `${mebibytes} MiB with a length`);
    }
    // Of unknown length, as a stream sends it.
    const path = `/internal/cli/integrations/${by.integrationId}/invocations/${randomUUID()}/execute`;
    const streamed = await fetch(new URL(path, app.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${by.capability}`, 'content-type': 'application/json' },
      body: ReadableStream.from([Buffer.from(JSON.stringify(large))]),
      duplex: 'half',
    } as RequestInit);
    t.equal(streamed.status, 413, `${mebibytes} MiB without a length`);
    t.match(await streamed.json(), { statusCode: 413, error: { code: 'payload_too_large' } });
  }
  t.equal(stripe.sent(), 0);
  const { rows } = await sql.owner.query('select from app.action_invocations where organization_id = $1', [
    by.org.organizationId,
  ]);
  t.equal(rows.length, 0);
  expectSuccess(await execute(by, refund));
});

t.test('what the schema of a tool marks as secret is in neither the summary nor the inbox', async (t) => {
  const by = await caller();
  await sql.owner.query(
    `update app.integration_tools set input_schema = jsonb_set(input_schema, '{properties,reason,writeOnly}', 'true')
      where organization_id = $1 and key = $2`,
    [by.org.organizationId, REFUND],
  );
  const renewed = await world.resolve(by.org, by.run);
  const { action } = expectSuccess(await execute(renewed, refund));
  t.match(action, {
    summary: `Refund 500 (in minor units of the charge’s currency) of charge ch_1, ${HIDDEN}`,
    arguments: { ...refund.arguments, reason: HIDDEN },
  });
  const items = expectSuccess(await app.owner.get(ownerPath(by.org, '/human-inbox')));
  t.match(JSON.stringify(items), HIDDEN);
  t.notMatch(JSON.stringify(items), 'duplicate');
});

t.test(
  'arguments are walked once, by what reads the body: a mebibyte of small values keeps nobody waiting',
  async (t) => {
    const many = Array.from({ length: 10 }, () => []);
    // What walks them also copies them.
    t.equal(executionBody.parse({ tool: REFUND, arguments: { many } }).arguments['many'], many);
    t.equal(actionSchema.shape.arguments.parse({ many })['many'], many);
  },
);

t.test('equal proposals are one action, 20 at once by one name and by others', async (t) => {
  const by = await caller();
  const id = randomUUID();
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) => execute(by, refund, index < 10 ? id : randomUUID())),
  );
  t.equal(new Set(replies.map(idOf)).size, 1);
  t.equal(refusalOf(await execute(by, { ...refund, timeoutMs: 1 }, id)), '409 state_conflict differs');
  const other = idOf(await execute(by, { ...refund, arguments: { charge: 'ch_2' } }));
  const repeated = expectSuccess(await execute(by, { ...refund, repeat: true })).action;
  t.equal(new Set([idOf(await execute(by, refund)), other, repeated?.id]).size, 3);
});

t.test('retryOf names an action that is over without success', async (t) => {
  const by = await caller();
  const id = idOf(await execute(by, refund));
  t.match(refusalOf(await execute(by, { ...refund, retryOf: id })), /^400 validation_failed not_over/);
  await app.owner.post(ownerPath(by.org, `/actions/${id}/reject`), { reason: 'Too much' });
  t.match(expectSuccess(await execute(by, { ...refund, retryOf: id })).action, { retryOf: id });
});

t.test('what may not be proposed', async (t) => {
  const by = await caller({ config: { limits: { maxDailyActions: 1 } } });
  const reply = await execute(by, { tool: REFUND, arguments: { charge: 'ch_1', amount: 0.5 } });
  t.equal(reply.status, 400);
  t.same(issuePaths(reply), ['arguments.amount']);
  expectSuccess(await execute(by, refund));
  t.match(refusalOf(await execute(by, { ...refund, arguments: { charge: 'ch_2' } })), /^409 daily_limit_reached/);
  const reader = await caller();
  await allow(sql, reader.org, 'integrations.read');
  const renewed = await world.resolve(reader.org, reader.run);
  t.equal(refusalOf(await execute(renewed, refund)), '409 state_conflict tool_policy');
  const readOnly = await caller();
  expectSuccess(await app.owner.put(ownerPath(readOnly.org, '/integrations/shop/tools'), { accessMode: 'read_only' }));
  t.match(refusalOf(await execute(await world.resolve(readOnly.org, readOnly.run), refund)), /^404 tool_not_found/);
});

t.test('a run that verifies reads, and proposes nothing', async (t) => {
  const org = await createTestOrganization(sql);
  await world.connectShop(org);
  const reviewer = await createSecondProfile(sql, org, { key: 'reviewer' });
  await allow(sql, reviewer, 'integrations.read', 'integrations.propose');
  const made = await runTask(app, org, { spec: { verification: 'agent', verifierProfileKey: 'reviewer' } });
  expectSuccess(await workerOf(app, made).complete());
  const run = await runNext(app, org);
  t.equal(run.taskId, made.taskId);
  const verifier = await world.resolve(org, run);
  t.match(expectSuccess(await execute(verifier, { tool: CHARGES, arguments: {} })), {
    kind: 'result',
    data: [{ id: 'ch_1' }, { id: 'ch_2' }],
  });
  t.equal(refusalOf(await execute(verifier, refund)), '409 state_conflict verify_read_only');
  const { rows } = await sql.owner.query('select from app.actions where organization_id = $1', [org.organizationId]);
  t.same(rows, []);
});

t.test('of a run that is over, and of one that plans', async (t) => {
  const by = await caller();
  await completeRun(sql.api, by.run);
  t.match(refusalOf(await execute(by, refund)), /^401 agent_unauthorized/);
  expectSuccess(await execute(await world.resolve(by.org, await runNew(sql, by.org)), refund));
  const plans = await world.resolve(by.org, await runPlan(sql, by.org));
  t.match(refusalOf(await execute(plans, refund)), /^409 state_conflict wrong_mode/);
});
