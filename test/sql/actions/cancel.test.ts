import t from 'tap';
import {
  actionOf,
  actionRow,
  approve,
  createActing,
  createProposer,
  createSibling,
  grantGateway,
  itemsOf,
  type Proposer,
  propose,
  proposeAction,
} from '../../support/action_fixtures.ts';
import { cancelMessage, completeTurn, createChatOrganization, startedTurn } from '../../support/chat_fixtures.ts';
import {
  cancelTask,
  completeRun,
  deleteOrganization,
  endLease,
  expire,
  failRun,
  retryTask,
  taskRow,
} from '../../support/fixtures.ts';
import { account, connect } from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

/** One that awaits its approval, and one that has it. */
async function proposed(by: Proposer): Promise<Readonly<{ awaiting: string; approved: string }>> {
  const awaiting = await propose(sql, by);
  const approved = await propose(sql, by, { arguments: { amount: 2 } });
  await approve(sql.api, by.org, approved.id);
  return { awaiting: awaiting.id, approved: approved.id };
}

async function states(ids: Readonly<Record<string, string>>) {
  const rows = await Promise.all(Object.values(ids).map((id) => actionRow(sql, id)));
  return rows.map(({ status, reason }) => [status, reason?.code ?? null]);
}

const cancelled = (code: string) => [
  ['cancelled', code],
  ['cancelled', code],
];
const kept = [
  ['awaiting_approval', null],
  ['approved', null],
];

scenario('a task that is cancelled cancels its actions', async (test) => {
  const by = await createProposer(sql);
  const ids = await proposed(by);
  const sibling = await createSibling(sql, by);
  const others = await proposed(sibling);
  await cancelTask(sql.api, by.org, by.run.taskId);
  test.same(await states(ids), cancelled('task_ended'));
  test.match(await itemsOf(sql, ids.awaiting), [{ kind: 'approval', status: 'cancelled' }]);
  test.match(await itemsOf(sql, ids.approved), [{ kind: 'approval', status: 'resolved' }], 'it was decided');
  test.same(await states(others), kept, 'and no others');
  await retryTask(sql.api, by.org, by.run.taskId);
  test.same(await states(ids), cancelled('task_ended'), 'a retry brings none back');
});

scenario('a task that fails cancels its actions, one that is tried again keeps them', async (test) => {
  const by = await createProposer(sql);
  const ids = await proposed(by);
  await failRun(sql.api, by.run, { retryable: true });
  test.match(await taskRow(sql, by.org, by.run.taskId), { status: 'pending' });
  test.same(await states(ids), kept);
  const failing = await createProposer(sql);
  const failed = await proposed(failing);
  await failRun(sql.api, failing.run);
  test.same(await states(failed), cancelled('task_ended'));
});

scenario('a task that completes keeps its actions, and the items about them', async (test) => {
  const by = await createProposer(sql);
  const ids = await proposed(by);
  await completeRun(sql.api, by.run);
  test.match(await taskRow(sql, by.org, by.run.taskId), { status: 'completed' });
  test.same(await states(ids), kept);
  test.match(await itemsOf(sql, ids.awaiting), [{ status: 'open' }]);
  await approve(sql.api, by.org, ids.awaiting);
});

/** A chat turn that may propose, and what it has proposed. */
async function turn() {
  const org = await createChatOrganization(sql);
  const { integration } = await createActing(sql, undefined, org);
  const started = await startedTurn(sql, org);
  const by = await grantGateway(sql, org, integration, started);
  return { org, started, ids: await proposed(by) };
}

scenario('a reply that is cancelled cancels its actions at once', async (test) => {
  const { org, started, ids } = await turn();
  await cancelMessage(sql.api, org, started.sent.assistantMessage);
  test.same(await states(ids), cancelled('reply_ended'));
  test.match(await itemsOf(sql, ids.awaiting), [{ status: 'cancelled' }]);
});

scenario('a reply that fails cancels its actions, a complete one keeps them', async (test) => {
  const failed = await turn();
  await failRun(sql.api, failed.started);
  test.same(await states(failed.ids), cancelled('reply_ended'));
  const lost = await turn();
  await endLease(sql, lost.started);
  await expire(sql.jobs, lost.started);
  test.same(await states(lost.ids), cancelled('reply_ended'));
  const complete = await turn();
  await completeTurn(sql.api, complete.started);
  test.same(await states(complete.ids), kept);
});

scenario('a connection that is removed or replaced cancels the actions of its integration', async (test) => {
  const changes = {
    disconnect: (by: Proposer) =>
      transition(sql.api, 'integration_disconnect', {
        organizationId: by.org.organizationId,
        integrationRef: by.integration.id,
      }),
    'another account': (by: Proposer) =>
      connect(sql.api, by.org, by.integration.id, account('other'), { revision: 1, replaceAccount: true }),
    'another server': (by: Proposer) =>
      transition(sql.api, 'integration_settings_put', {
        organizationId: by.org.organizationId,
        integrationRef: by.integration.id,
        connectionRevision: 1,
        settings: { server: 'other' },
        disconnect: true,
        forgetTools: false,
      }),
    'a revoked grant': async (by: Proposer) => {
      await sql.owner.query('update app.integration_connections set grant_hash = $2 where integration_id = $1', [
        by.integration.id,
        'a'.repeat(64),
      ]);
      const { rows } = await sql.owner.query('select clock_timestamp()::text as now');
      return transition(sql.api, 'integration_grant_delete', {
        organizationId: by.org.organizationId,
        grantHash: 'a'.repeat(64),
        connections: [{ id: by.integration.id, revision: 1 }],
        revoked: true,
        beganAt: rows[0].now,
      });
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    const by = await createProposer(sql);
    const ids = await proposed(by);
    const sibling = await proposed(await createSibling(sql, by));
    const other = await proposed(await createProposer(sql));
    await change(by);
    test.same(await states(ids), cancelled('connection_replaced'), name);
    test.same(await states(sibling), cancelled('connection_replaced'), `${name}, of each task`);
    test.match(await itemsOf(sql, ids.awaiting), [{ status: 'cancelled' }], name);
    test.same(await states(other), kept, `${name}, and of no other integration`);
  }
});

scenario('the same account connected again keeps them', async (test) => {
  const by = await createProposer(sql);
  const ids = await proposed(by);
  await connect(sql.api, by.org, by.integration.id, account('acme'), { revision: 1, nextRevision: 1 });
  test.same(await states(ids), kept);
});

scenario('an integration that is deleted cancels its actions, and they stay', async (test) => {
  const by = await createProposer(sql);
  const ids = await proposed(by);
  await transition(sql.api, 'integration_delete', {
    organizationId: by.org.organizationId,
    integrationRef: by.integration.key,
  });
  test.same(await states(ids), cancelled('integration_deleted'));
});

scenario('a proposal that comes before the disconnect is found by it', async (test) => {
  const by = await createProposer(sql);
  const first = await openSession(test, sql);
  const second = await openSession(test, sql);
  await first.begin();
  const action = await actionOf(await proposeAction(first, by));
  const { organizationId } = by.org;
  const disconnected = transition(second, 'integration_disconnect', {
    organizationId,
    integrationRef: by.integration.id,
  });
  await second.waits();
  await first.commit();
  await disconnected;
  test.same(await states({ id: action.id }), [['cancelled', 'connection_replaced']]);
});

scenario('a deleted organization cancels what waits', async (test) => {
  const by = await createProposer(sql);
  const ids = await proposed(by);
  await deleteOrganization(sql.api, by.org.organizationId);
  test.same(await states(ids), cancelled('organization_deleted'));
});
