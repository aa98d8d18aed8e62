import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  actionOf,
  actionRow,
  approve,
  createProposer,
  DECIDER,
  dueActions,
  itemsOf,
  makeOverdue,
  type Proposer,
  propose,
  reject,
} from '../../support/action_fixtures.ts';
import { capability, SERVICE, sha256, updateOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = (reason: string) => ({ status: 409, code: 'state_conflict', reason });

/** What an owner decides, as a call that says nothing of the action. */
const decisions = {
  approve: (by: Proposer, id: string, actor: JsonObject = DECIDER) => approve(sql.api, by.org, id, { actor }),
  reject: (by: Proposer, id: string, actor: JsonObject = DECIDER) => reject(sql.api, by.org, id, { actor }),
};

async function waiting() {
  const by = await createProposer(sql);
  return { by, action: await propose(sql, by) };
}

scenario('an approved action is due, and its item is resolved', async (test) => {
  const { by, action } = await waiting();
  test.same(await dueActions(sql, by.org, 'execute'), []);
  const approved = await approve(sql.api, by.org, action.id, {
    expectedVersion: 1,
    argumentsSha256: action.arguments_sha256,
    note: 'Go on',
  });
  test.match(actionOf(approved), {
    status: 'approved',
    version: 2,
    decision: 'approved',
    decided_by: 'ada',
    decision_note: 'Go on',
  });
  test.same(approved['seen'], { version: 1, argumentsSha256: action.arguments_sha256 }, 'what the decision was about');
  test.same(await dueActions(sql, by.org, 'execute'), [action.id]);
  test.match(await itemsOf(sql, action.id), [{ kind: 'approval', status: 'resolved' }]);
});

scenario('a rejected action is over', async (test) => {
  const { by, action } = await waiting();
  const rejected = await reject(sql.api, by.org, action.id, { reason: 'Too much' });
  test.match(actionOf(rejected), { status: 'rejected', version: 2, decision: 'rejected', decision_note: 'Too much' });
  test.match(rejected['seen'], { argumentsSha256: action.arguments_sha256 });
  test.match(await itemsOf(sql, action.id), [{ kind: 'approval', status: 'resolved' }]);
  test.same(await dueActions(sql, by.org, 'execute'), []);
});

scenario('another version or other arguments than were seen are refused', async (test) => {
  const { by, action } = await waiting();
  test.match(await refusal(approve(sql.api, by.org, action.id, { expectedVersion: 2 })), conflict('stale'));
  test.match(
    await refusal(approve(sql.api, by.org, action.id, { argumentsSha256: sha256('other') })),
    conflict('differs'),
  );
  test.match(await actionRow(sql, action.id), { status: 'awaiting_approval', version: 1 });
});

scenario('the same decision again changes nothing, another one is refused', async (test) => {
  for (const [first, second] of [
    ['approve', 'reject'],
    ['reject', 'approve'],
  ] as const) {
    const { by, action } = await waiting();
    await decisions[first](by, action.id);
    const before = await actionRow(sql, action.id);
    const again = await decisions[first](by, action.id, { kind: 'owner', by: 'ben' });
    test.match(actionOf(again), { decided_by: 'ada', version: 2 });
    test.match(await refusal(decisions[second](by, action.id)), conflict('decided'));
    test.same(await actionRow(sql, action.id), before);
  }
  const { by, action } = await waiting();
  await approve(sql.api, by.org, action.id, { expectedVersion: 1 });
  test.match(actionOf(await approve(sql.api, by.org, action.id, { expectedVersion: 1 })), { version: 2 }, 'sent twice');
  const other = sha256('other');
  test.match(await refusal(approve(sql.api, by.org, action.id, { argumentsSha256: other })), conflict('differs'));
});

scenario('of an approval and a rejection at once one wins', async (test) => {
  const { by, action } = await waiting();
  const first = await openSession(test, sql);
  const second = await openSession(test, sql);
  await first.begin();
  await approve(first, by.org, action.id);
  const rejected = refusal(reject(second, by.org, action.id));
  await second.waits();
  await first.commit();
  test.match(await rejected, conflict('decided'));
  test.match(await actionRow(sql, action.id), { status: 'approved' });
});

scenario('what needs no approval is not decided about', async (test) => {
  const by = await createProposer(sql, { constraints: { approvalRequiredForRisk: [] } });
  const action = await propose(sql, by);
  for (const decide of Object.values(decisions)) {
    test.match(await refusal(decide(by, action.id)), conflict('decided'));
  }
});

scenario('owners decide: no viewer, no agent, no service, no other organization', async (test) => {
  const { by, action } = await waiting();
  const other = await waiting();
  for (const decide of Object.values(decisions)) {
    test.match(await refusal(decide(by, action.id, { ...DECIDER, role: 'viewer' })), {
      status: 403,
      code: 'forbidden',
    });
    test.match(await refusal(decide(by, action.id, SERVICE)), { status: 403, code: 'forbidden' });
    test.match(await refusal(decide(by, action.id, capability(by.run.executionToken))), {
      status: 403,
      code: 'forbidden',
    });
    test.match(await refusal(decide(by, action.id, capability(randomUUID()))), { status: 401 });
    test.match(await refusal(decide(other.by, action.id)), { status: 404, code: 'action_not_found' });
    test.match(await refusal(decide(by, randomUUID())), { status: 404, code: 'action_not_found' });
  }
  test.match(await actionRow(sql, action.id), { status: 'awaiting_approval', version: 1 });
});

scenario('an owner of a suspended organization decides', async (test) => {
  const { by, action } = await waiting();
  await updateOrganization(sql.api, by.org, { status: 'suspended' });
  test.match(actionOf(await reject(sql.api, by.org, action.id)), { status: 'rejected' });
});

scenario('a decision after its time is refused, and the action has expired', async (test) => {
  for (const decide of Object.values(decisions)) {
    const { by, action } = await waiting();
    await makeOverdue(sql, action.id);
    const refused = await refusal(decide(by, action.id));
    test.match(refused, { ...conflict('expired'), raised: false });
    test.match(await actionRow(sql, action.id), { status: 'expired', version: 2, reason: { code: 'not_decided' } });
    test.match(await itemsOf(sql, action.id), [{ status: 'cancelled' }]);
    test.match(await refusal(decide(by, action.id)), conflict('expired'), 'and again, or once the job was there first');
  }
});
