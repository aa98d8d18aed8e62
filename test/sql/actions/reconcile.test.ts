import t from 'tap';
import {
  actionOf,
  actionRow,
  createProposer,
  DECIDER,
  itemsOf,
  makeUnknown,
  type Proposer,
  propose,
} from '../../support/action_fixtures.ts';
import { capability, completeRun, failRun, SERVICE } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

/** An action of which nobody knows what became of it. */
async function unknown() {
  const by = await createProposer(sql, { constraints: { approvalRequiredForRisk: [] } });
  const { id } = await makeUnknown(sql, by);
  return { by, id };
}

function reconcile({ org }: Proposer, actionId: string, outcome: string, actor: JsonObject = DECIDER) {
  const { organizationId } = org;
  return transition(sql.api, 'action_reconcile', { organizationId, actionId, outcome, note: 'I have looked', actor });
}

for (const outcome of ['succeeded', 'failed', 'not_executed']) {
  scenario(`an unknown outcome is reconciled to ${outcome}, once`, async (test) => {
    const { by, id } = await unknown();
    const { seen, ...result } = await reconcile(by, id, outcome);
    test.match(actionOf(result), { status: outcome, reconciliation: outcome, reconciled_by: 'ada' });
    test.match(seen, { argumentsSha256: /^[0-9a-f]{64}$/ });
    test.match(await itemsOf(sql, id), [{ kind: 'reconciliation', status: 'resolved' }]);
    const before = await actionRow(sql, id);
    await reconcile(by, id, outcome, { kind: 'owner', by: 'ben' });
    test.same(await actionRow(sql, id), before, 'the same again changes nothing');
    const other = outcome === 'failed' ? 'succeeded' : 'failed';
    test.match(await refusal(reconcile(by, id, other)), { status: 409, code: 'state_conflict', reason: 'decided' });
    const again = await propose(sql, by, outcome === 'succeeded' ? {} : { retryOf: id });
    test.equal(again.id === id, outcome === 'succeeded', 'what did not happen is proposed anew');
  });
}

scenario('nothing but an unknown outcome is reconciled, and by owners alone', async (test) => {
  const by = await createProposer(sql);
  const open = await propose(sql, by);
  test.match(await refusal(reconcile(by, open.id, 'failed')), { status: 409, reason: 'decided' });
  const lost = await unknown();
  for (const actor of [{ ...DECIDER, role: 'viewer' }, SERVICE, capability(lost.by.run.executionToken)]) {
    test.match(await refusal(reconcile(lost.by, lost.id, 'failed', actor)), { status: 403, code: 'forbidden' });
  }
  test.match(await refusal(reconcile(by, lost.id, 'failed')), { status: 404, code: 'action_not_found' });
  test.match(await actionRow(sql, lost.id), { status: 'unknown' });
});

scenario('the end of its task leaves the item of an unknown outcome open', async (test) => {
  const failed = await unknown();
  await failRun(sql.api, failed.by.run);
  const completed = await unknown();
  await completeRun(sql.api, completed.by.run);
  for (const { by, id } of [failed, completed]) {
    test.match(await itemsOf(sql, id), [{ kind: 'reconciliation', status: 'open' }]);
    test.match(actionOf(await reconcile(by, id, 'not_executed')), { status: 'not_executed' });
  }
});
