import t from 'tap';
import {
  actionFile,
  actionOf,
  actionRow,
  approve,
  createActing,
  createEngineering,
  createProposer,
  createSibling,
  grantGateway,
  itemsOf,
  jobOf,
  makeOverdue,
  proposal,
  propose,
  proposeAction,
  reject,
  renewed,
} from '../../support/action_fixtures.ts';
import { createChatOrganization, startedTurn } from '../../support/chat_fixtures.ts';
import { cancelTask, endLease, runPlan, sha256 } from '../../support/fixtures.ts';
import { allow } from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };
const conflict = (reason: string) => ({ status: 409, code: 'state_conflict', reason });

/** The first and last second of days whose clocks change at midnight. */
const DAYS: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  // Of 25 hours, whose first comes twice, and of 23, which begins at 01:00.
  'America/Havana': [
    ['2026-11-01T04:00:00Z', '2026-11-02T04:59:59Z'],
    ['2026-03-08T05:00:00Z', '2026-03-09T03:59:59Z'],
  ],
  'Atlantic/Azores': [['2026-10-25T00:00:00Z', '2026-10-26T00:59:59Z']],
  // Its last hour comes twice.
  'Africa/Cairo': [['2026-10-28T21:00:00Z', '2026-10-29T21:59:59Z']],
};

scenario('a risk that needs an approval awaits it, with an item in the inbox', async (test) => {
  const by = await createProposer(sql);
  const action = await propose(sql, by, { files: [actionFile('body')] });
  test.match(action, {
    status: 'awaiting_approval',
    requires_approval: true,
    risk: 'external',
    version: 1,
    task_id: by.run.taskId,
    run_id: by.run.runId,
    integration_key: by.integration.key,
    provider: 'stripe',
    kind: 'provider_write',
    due_at: null,
    files: [{ argument: 'body', name: 'body.txt', sha256: sha256('body') }],
  });
  test.notOk('lease_id' in action, 'what the database compares is not shown');
  test.match(await itemsOf(sql, action.id), [
    {
      kind: 'approval',
      purpose: 'approval',
      status: 'open',
      task_id: by.run.taskId,
      title: 'Approve: Create {"amount":1}',
    },
  ]);
  const { rows } = await sql.owner.query(
    `select extract(day from expires_at - created_at)::int as days from app.actions where id = $1`,
    [action.id],
  );
  test.same(rows, [{ days: 7 }]);
});

scenario('a risk that needs none is approved and due', async (test) => {
  const by = await createProposer(sql, { constraints: { approvalRequiredForRisk: ['high'] } });
  const action = await propose(sql, by);
  test.match(action, { status: 'approved', requires_approval: false, decision: null });
  test.ok(action['due_at']);
  test.same(await itemsOf(sql, action.id), []);
  const raised = await propose(sql, by, { arguments: { amount: 2 }, risk: 'high' });
  test.match(raised, { status: 'awaiting_approval', risk: 'high' }, 'the call itself may be riskier than its tool');
  test.match(await propose(sql, by, { arguments: { amount: 3 }, risk: 'low' }), { risk: 'external' }, 'never less');
});

scenario('twenty equal proposals at once are one action', async (test) => {
  const by = await createProposer(sql);
  const made = await Promise.all(Array.from({ length: 20 }, () => proposeAction(sql.api, by)));
  test.equal(made.filter((one) => one['made']).length, 1);
  test.equal(new Set(made.map((one) => actionOf(one).id)).size, 1);
  const { rows } = await sql.owner.query('select count(*)::int as n from app.actions where organization_id = $1', [
    by.org.organizationId,
  ]);
  test.same(rows, [{ n: 1 }]);
});

scenario('an equal proposal is the one that stands, unless it says repeat', async (test) => {
  const by = await createProposer(sql, { constraints: { approvalRequiredForRisk: [] } });
  const first = await propose(sql, by, { files: [actionFile('body')] });
  test.equal((await propose(sql, by, { files: [actionFile('body')] })).id, first.id);
  const others = {
    arguments: await propose(sql, by, { arguments: { amount: 2 }, files: [actionFile('body')] }),
    files: await propose(sql, by, { files: [actionFile('body', 'other')] }),
    task: await propose(sql, await createSibling(sql, by), { files: [actionFile('body')] }),
  };
  for (const [differs, other] of Object.entries(others)) test.not(other.id, first.id, differs);
  const again = await propose(sql, by, { files: [actionFile('body')], repeat: true });
  test.match(again, { status: 'awaiting_approval', requires_approval: true }, 'which always needs an approval');
  test.not(again.id, first.id);
  const same = async () => (await propose(sql, by, { files: [actionFile('body')] })).id;
  test.equal(await same(), first.id, 'the older one of two that are open');
  const job = jobOf(sql.jobs, by.org, first.id);
  await job.lease();
  await job.begin([actionFile('body')]);
  test.match(await job.finish('succeeded', { result: {} }), { action: { status: 'succeeded' } });
  test.equal(await same(), again.id, 'one that is open rather than one that has succeeded');
});

scenario('one that is over without success is proposed anew', async (test) => {
  const by = await createProposer(sql);
  const first = await propose(sql, by);
  test.match(
    await refusal(proposeAction(sql.api, by, { arguments: { amount: 2 }, retryOf: first.id })),
    { status: 400, code: 'validation_failed', reason: 'not_over' },
    'while it is open there is nothing to try again',
  );
  await reject(sql.api, by.org, first.id);
  const second = await propose(sql, by, { retryOf: first.id });
  test.not(second.id, first.id);
  test.equal(second['retry_of'], first.id);
  const other = await createProposer(sql);
  test.match(
    await refusal(proposeAction(sql.api, other, { retryOf: first.id })),
    { reason: 'not_over' },
    'nor elsewhere',
  );
});

scenario('an invocation is for one body', async (test) => {
  const by = await createProposer(sql);
  const one = proposal();
  const first = await propose(sql, by, one);
  await reject(sql.api, by.org, first.id);
  test.equal((await propose(sql, by, one)).id, first.id, 'the same again, whatever has become of it');
  test.match(await refusal(proposeAction(sql.api, by, { ...one, bodySha256: sha256('other') })), conflict('differs'));
  test.equal(
    (await propose(sql, await renewed(sql, by), one)).id,
    first.id,
    'and by another capability of the same execution',
  );
  const sibling = await createSibling(sql, by);
  test.not((await propose(sql, sibling, one)).id, first.id, 'another execution has names of its own');
});

scenario('the day of the organization has so many actions; what did not happen is given back', async (test) => {
  const by = await createProposer(sql, {
    config: { timezone: 'Pacific/Kiritimati', limits: { maxDailyActions: 2 } },
  });
  const first = await propose(sql, by);
  const second = await propose(sql, by, { arguments: { amount: 2 } });
  const sibling = await createSibling(sql, by);
  const over = { status: 409, code: 'daily_limit_reached' };
  test.match(await refusal(proposeAction(sql.api, sibling)), over);
  test.equal((await propose(sql, by)).id, first.id, 'an equal one is none more');
  await reject(sql.api, by.org, second.id);
  await propose(sql, sibling);
  test.match(await refusal(proposeAction(sql.api, by, { arguments: { amount: 3 } })), over);
  // Yesterday, by the clocks of the organization.
  await sql.owner.query(
    `update app.actions set created_at = date_trunc('day', now(), 'Pacific/Kiritimati') - interval '1 second' where id = $1`,
    [first.id],
  );
  await propose(sql, by, { arguments: { amount: 3 } });
});

scenario('where midnight repeats or is left out, a day has all of its hours', async (test) => {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by);
  /** How many there are on the day of a point in time, when the only one was made at another. */
  const counted = async (timezone: string, madeAt: string, at: string) => {
    await sql.owner.query('update app.actions set created_at = $2 where id = $1', [id, madeAt]);
    const { rows } = await sql.owner.query('select app.actions_of_day($1, $2, $3)::int as n', [
      by.org.organizationId,
      timezone,
      at,
    ]);
    return rows[0].n;
  };
  for (const [timezone, days] of Object.entries(DAYS)) {
    for (const [first, last] of days) {
      const [start, end, before, after] = [first, last, -1_000 + Date.parse(first), 1_000 + Date.parse(last)];
      for (const at of [start, end, `${start.slice(0, 14)}30:00Z`]) {
        test.equal(await counted(timezone, start, at), 1, `${timezone}: of ${start} at ${at}`);
        test.equal(
          await counted(timezone, new Date(before).toISOString(), at),
          0,
          `${timezone}: the day before, at ${at}`,
        );
      }
      test.equal(await counted(timezone, end, new Date(after).toISOString()), 0, `${timezone}: after ${end}`);
    }
  }
});

scenario('one that expires, and one that is cancelled, are given back to the day', async (test) => {
  const by = await createProposer(sql, { config: { limits: { maxDailyActions: 1 } } });
  const { organizationId } = by.org;
  const over = { status: 409, code: 'daily_limit_reached' };
  const expiring = await propose(sql, by);
  const sibling = await createSibling(sql, by);
  test.match(await refusal(proposeAction(sql.api, sibling)), over);
  await makeOverdue(sql, expiring.id);
  test.match(await refusal(proposeAction(sql.api, sibling)), over, 'until it has expired');
  await transition(sql.jobs, 'actions_expire', { organizationId, actionIds: [expiring.id] });
  const cancelled = await propose(sql, sibling);
  test.match(await refusal(proposeAction(sql.api, by)), over);
  await cancelTask(sql.api, by.org, sibling.run.taskId);
  test.match(await actionRow(sql, cancelled.id), { status: 'cancelled' });
  await propose(sql, by);
  test.match(await refusal(proposeAction(sql.api, by, { arguments: { amount: 2 } })), over);
});

scenario('of two that reach the limit at once, one is refused', async (test) => {
  const by = await createProposer(sql, { config: { limits: { maxDailyActions: 1 } } });
  const sibling = await createSibling(sql, by);
  const ended = await Promise.allSettled([proposeAction(sql.api, by), proposeAction(sql.api, sibling)]);
  test.same(ended.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
});

scenario('a chat turn proposes for its chat', async (test) => {
  const org = await createChatOrganization(sql);
  const { integration } = await createActing(sql, undefined, org);
  const turn = await startedTurn(sql, org);
  const by = await grantGateway(sql, org, integration, turn);
  const [first, second] = await Promise.all([propose(sql, by), propose(sql, by)]);
  test.equal(first.id, second.id);
  test.match(first, { task_id: null, chat_id: turn.chatId, message_id: turn.messageId });
  test.match(await itemsOf(sql, first.id), [{ kind: 'approval', task_id: null, chat_id: turn.chatId }]);
});

scenario('only execute runs and chat turns propose', async (test) => {
  const { org, integration } = await createActing(sql);
  const planning = await grantGateway(sql, org, integration, await runPlan(sql, org));
  test.match(await refusal(proposeAction(sql.api, planning)), conflict('wrong_mode'));
  const by = await createProposer(sql);
  await sql.owner.query(`update app.run_requests set mode = 'verify' where run_id = $1`, [by.run.runId]);
  test.match(await refusal(proposeAction(sql.api, by)), conflict('verify_read_only'));
  await sql.owner.query(`update app.run_requests set mode = 'execute' where run_id = $1`, [by.run.runId]);
});

scenario('what may not be used is not proposed', async (test) => {
  const by = await createProposer(sql);
  const missing = { status: 404, code: 'tool_not_found' };
  test.match(await refusal(proposeAction(sql.api, by, { tool: 'items.destroy' })), missing);
  test.match(
    await refusal(proposeAction(sql.api, by, { tool: 'items.list' })),
    conflict('tool_changed'),
    'a read is none',
  );
  await allow(sql, by.org, 'integrations.read');
  const reading = await renewed(sql, by);
  test.match(await refusal(proposeAction(sql.api, reading)), conflict('tool_policy'));
  await allow(sql, by.org, 'integrations.propose');
  const writing = await renewed(sql, by);
  await sql.owner.query(
    `update app.integration_connections set granted_scopes = '["read"]' where integration_id = $1`,
    [by.integration.id],
  );
  test.match(await refusal(proposeAction(sql.api, writing)), conflict('stale_epoch'));
  test.match(await refusal(proposeAction(sql.api, await renewed(sql, by))), conflict('scopes_missing'));
});

scenario('a push is proposed through the gateway of git', async (test) => {
  const by = await createProposer(sql, undefined, await createEngineering(sql));
  const git = await grantGateway(sql, by.org, by.integration, by.run, 'git');
  const push = { gateway: 'git', tool: 'git.push', risk: 'high', files: [actionFile('pack')] };
  test.match(await propose(sql, git, push), { kind: 'git_push', tool: 'git.push', risk: 'high' });
  test.match(await refusal(proposeAction(sql.api, by, push)), unauthorized, 'its own capability');
  await allow(sql, by.org, 'git.read', 'integrations.propose');
  const reading = await grantGateway(sql, by.org, by.integration, by.run, 'git');
  const another = { ...push, arguments: { branch: 'main' } };
  test.match(await refusal(proposeAction(sql.api, reading, another)), conflict('tool_policy'));
  const other = await createProposer(sql);
  const outside = await grantGateway(sql, other.org, other.integration, other.run, 'git');
  test.match(await refusal(proposeAction(sql.api, outside, push)), conflict('department'));
});

scenario('a capability of another execution, organization or time proposes nothing', async (test) => {
  const by = await createProposer(sql);
  const other = await createProposer(sql);
  test.match(await refusal(proposeAction(sql.api, { ...by, token: other.token })), unauthorized);
  test.match(await refusal(proposeAction(sql.api, { ...by, org: other.org })), unauthorized);
  test.match(await refusal(proposeAction(sql.api, { ...by, integration: other.integration })), unauthorized);
  await endLease(sql, by.run);
  test.match(await refusal(proposeAction(sql.api, by)), unauthorized);
  const { rows } = await sql.owner.query('select from app.actions where organization_id = $1', [by.org.organizationId]);
  test.same(rows, []);
});

scenario('an action remembers what was approved', async (test) => {
  const by = await createProposer(sql);
  const action = await propose(sql, by);
  await approve(sql.api, by.org, action.id);
  test.match(await actionRow(sql, action.id), { status: 'approved', arguments: { amount: 1 } });
});
