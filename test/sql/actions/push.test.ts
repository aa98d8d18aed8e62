import t from 'tap';
import {
  actionFile,
  approve,
  createEngineering,
  createProposer,
  dueActions,
  grantGateway,
  itemsOf,
  jobOf,
  propose,
} from '../../support/action_fixtures.ts';
import { updateOrganization, updateProfile } from '../../support/fixtures.ts';
import { account, allow, connect } from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const PACK = actionFile('pack');
const REQUIRED = { constraints: { approvalRequiredForRisk: ['external'] } };
const NOT_REQUIRED = { constraints: { approvalRequiredForRisk: [] } };

/** A push that may be sent, and a job for it. */
async function due(constraints: object) {
  const { org, integration, run } = await createProposer(sql, { ...constraints }, await createEngineering(sql));
  const by = await grantGateway(sql, org, integration, run, 'git');
  const push = { gateway: 'git', tool: 'git.push', risk: 'external', files: [PACK], timeoutMs: 600_000 };
  const { id } = await propose(sql, by, push);
  if (constraints === REQUIRED) await approve(sql.api, org, id);
  return { by, id, job: jobOf(sql.jobs, org, id) };
}
type Made = Awaited<ReturnType<typeof due>>;

const integrationPut = (name: 'integration_status_set' | 'integration_tools_put', fields: object) => (made: Made) =>
  transition(sql.api, name, {
    organizationId: made.by.org.organizationId,
    integrationRef: made.by.integration.id,
    ...fields,
  });

/** By the reason; what follows a colon tells two of the same apart. */
const CHANGES: Readonly<Record<string, (made: Made) => Promise<unknown>>> = {
  suspended: ({ by }) => updateOrganization(sql.api, by.org, { status: 'suspended' }),
  disabled: integrationPut('integration_status_set', { status: 'disabled' }),
  read_only: integrationPut('integration_tools_put', { change: { accessMode: 'read_only' } }),
  tool_policy: ({ by }) => allow(sql, by.org, 'git.read', 'integrations.propose'),
  'tool_policy: it may not read': ({ by }) => allow(sql, by.org, 'git.propose', 'integrations.propose'),
  department: ({ by }) => updateProfile(sql.api, by.org, { department: 'support' }),
  'department: an operator has none': ({ by }) =>
    updateProfile(sql.api, by.org, { kind: 'operator', department: null }),
  provider_forbidden: ({ by }) =>
    updateOrganization(sql.api, by.org, { constraints: { allowedIntegrations: ['mongodb'] } }),
  profile_disabled: ({ by }) => updateProfile(sql.api, by.org, { status: 'disabled' }),
  // As the digest of the account says, where the revision is the same.
  connection_replaced: ({ by }) =>
    sql.owner.query(`update app.integration_connections set subject_hash = repeat('b', 64) where integration_id = $1`, [
      by.integration.id,
    ]),
};

scenario('what has changed since its approval cancels a push, with the reason', async (test) => {
  for (const [reason, change] of Object.entries(CHANGES)) {
    const made = await due(REQUIRED);
    await made.job.lease();
    await change(made);
    const code = reason.split(':')[0];
    const cancelled = { begun: false, action: { status: 'cancelled', reason: { code } } };
    test.match(await made.job.begin([PACK]), cancelled, reason);
    test.match(await refusal(made.job.begin([PACK])), { reason: 'lease_taken' }, reason);
    test.same(await dueActions(sql, made.by.org, 'execute'), [], reason);
  }
  const unchanged = await due(REQUIRED);
  await unchanged.job.lease();
  test.match(await unchanged.job.begin([PACK]), { begun: true });
});

scenario('a push without a response is looked up after its own time-out', async (test) => {
  const { id, job } = await due(NOT_REQUIRED);
  await job.lease();
  await job.begin([PACK]);
  const { rows } = await sql.owner.query(
    'select extract(epoch from due_at - lease_expires_at)::int as after from app.actions where id = $1',
    [id],
  );
  test.same(rows, [{ after: 600 }]);
  const by = await createProposer(sql);
  await test.rejects(propose(sql, by, { timeoutMs: 60_001 }), /actions_timeout_ms_check/, 'no tool has so long');
});

scenario('a connection that is replaced cancels an approved push at once', async (test) => {
  const { by, job } = await due(REQUIRED);
  await job.lease();
  await connect(sql.api, by.org, by.integration.id, account('another'), { revision: 1, replaceAccount: true });
  test.match(await job.lease(), {
    leased: false,
    action: { status: 'cancelled', reason: { code: 'connection_replaced' } },
  });
  test.match(await refusal(job.begin([PACK])), { reason: 'lease_taken' });
});

scenario('a push that needed no approval is asked about where one is required by now', async (test) => {
  const { by, id, job } = await due(NOT_REQUIRED);
  await job.lease();
  await updateOrganization(sql.api, by.org, REQUIRED);
  test.match(await job.begin([PACK]), {
    begun: false,
    action: { status: 'awaiting_approval', requires_approval: true, reason: { code: 'approval_required' } },
  });
  test.match(await itemsOf(sql, id), [{ kind: 'approval', status: 'open' }]);
  await approve(sql.api, by.org, id);
  const other = jobOf(sql.jobs, by.org, id);
  await other.lease();
  test.match(await other.begin([PACK]), { begun: true });
});
