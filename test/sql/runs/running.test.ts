import t from 'tap';
import { createTestOrganization, markRunning, runNew } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const differs = { status: 409, code: 'run_lease_expired', reason: 'differs', raised: true };

scenario('running says what the run runs on; again it is the same result, with other content refused', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  test.same(await markRunning(sql.api, run, 'm-1'), { status: 'running' });
  test.same(await markRunning(sql.api, run, 'm-1'), { status: 'running' });
  test.match(await refusal(markRunning(sql.api, run, 'm-2')), differs);
  const { rows } = await sql.owner.query('select status, harness, model, workspace_uri from app.runs where id = $1', [
    run.runId,
  ]);
  test.same(rows, [{ status: 'running', harness: 'h', model: 'm-1', workspace_uri: null }]);
});
