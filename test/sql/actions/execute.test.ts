import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  actionFile,
  actionOf,
  actionRow,
  approve,
  createProposer,
  dueActions,
  itemsOf,
  jobOf,
  type ProposeFields,
  passTime,
  propose,
} from '../../support/action_fixtures.ts';
import { cancelTask, updateOrganization, updateProfile } from '../../support/fixtures.ts';
import { allow } from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const taken = { status: 409, code: 'state_conflict', reason: 'lease_taken' };
const NO_APPROVAL = { constraints: { approvalRequiredForRisk: [] } };

/** An action that is due, and a job for it. */
async function due(fields: ProposeFields = {}, patch: object = NO_APPROVAL) {
  const by = await createProposer(sql, { ...patch });
  const { id } = await propose(sql, by, fields);
  return { by, id, job: jobOf(sql.jobs, by.org, id), other: jobOf(sql.jobs, by.org, id) };
}

/** One that was begun, and then nothing was heard of it. */
async function lost() {
  const made = await due();
  await made.job.lease();
  await made.job.begin();
  await passTime(sql, made.id);
  return made;
}

scenario('the holder of the lease commits the intent, and then the response of the provider', async (test) => {
  const { by, job } = await due();
  test.match(await job.lease(), { leased: true, purpose: 'execute', connectionRevision: 1, storageKeys: {} });
  test.same(await dueActions(sql, by.org, 'execute'), [], 'nobody else takes it meanwhile');
  const begun = await job.begin();
  test.match(begun, { begun: true, action: { status: 'executing', execution_attempts: 1, version: 2 } });
  test.same(await job.begin(), begun, 'sent twice');
  test.match(actionOf(await job.finish('succeeded', { result: { id: 're_1' } })), {
    status: 'succeeded',
    version: 3,
    result: { id: 're_1' },
    due_at: null,
  });
  test.match(
    actionOf(await job.finish('failed', { error: { code: 'x' } })),
    { status: 'succeeded', version: 3 },
    'a repeat',
  );
  test.match(await job.lease(), { leased: false });
  test.match(await refusal(job.begin()), taken);
});

scenario('what the provider refuses has failed', async (test) => {
  const { id, job } = await due();
  await job.lease();
  await job.begin();
  await job.finish('failed', { error: { code: 'provider_failed', message: 'No' } });
  test.match(await actionRow(sql, id), { status: 'failed', error: { code: 'provider_failed' }, result: null });
});

scenario('of two jobs one has the lease; a repeat of its holder is the same', async (test) => {
  const { id, job, other } = await due();
  const both = await Promise.all([job.lease(), other.lease()]);
  test.equal(both.filter(({ leased }) => leased).length, 1);
  const [holder, late] = both[0]?.['leased'] ? [job, other] : [other, job];
  test.match(await holder.lease(), { leased: true });
  test.match(await refusal(late.begin()), taken);
  test.match(await refusal(late.finish('succeeded')), taken);
  test.same(await late.release(), { released: false });
  test.match(await actionRow(sql, id), { status: 'approved', execution_attempts: 1 });
});

scenario('a lease is given back before anything is sent', async (test) => {
  const { by, job } = await due();
  await job.lease();
  test.same(await job.release(0), { released: true });
  test.same(await job.release(0), { released: false });
  test.equal((await dueActions(sql, by.org, 'execute')).length, 1);
  test.match(await refusal(job.begin()), taken, 'and begins nothing');
});

scenario('a job that dies before the intent loses nothing: another one executes it', async (test) => {
  const { by, id, job, other } = await due();
  await job.lease();
  await passTime(sql, id);
  test.match(await refusal(job.begin()), taken, 'its lease is over, although nobody has taken it');
  test.same(await dueActions(sql, by.org, 'execute'), [id]);
  test.match(await other.lease(), { leased: true, purpose: 'execute', action: { execution_attempts: 2 } });
  test.match(await refusal(job.begin()), taken);
  test.match(await other.begin(), { begun: true });
});

scenario('after the intent nothing is sent again: it is looked up after lease and time-out', async (test) => {
  const { by, id, job, other } = await due();
  await job.lease();
  await job.begin();
  test.match(await other.lease(), { leased: false });
  const { rows } = await sql.owner.query(
    'select extract(epoch from due_at - lease_expires_at)::int as after from app.actions where id = $1',
    [id],
  );
  test.same(rows, [{ after: 60 }]);
  await sql.owner.query(`update app.actions set lease_expires_at = now() - interval '1 second' where id = $1`, [id]);
  test.match(await other.lease(), { leased: false }, 'the provider has its time');
  await passTime(sql, id);
  test.same(await dueActions(sql, by.org, 'execute'), [id]);
  test.match(await other.lease(), {
    leased: true,
    purpose: 'look_up',
    action: { status: 'executing', look_up_count: 1 },
  });
  test.match(await refusal(other.begin()), taken);
  test.match(await refusal(job.finish('succeeded')), taken, 'whoever sent it comes too late');
});

scenario('a response that comes after the lease counts, while nobody has looked it up', async (test) => {
  const { id, job } = await lost();
  await job.finish('succeeded', { result: {} });
  test.match(await actionRow(sql, id), { status: 'succeeded' });
});

scenario('what is found has succeeded, what is surely absent has failed', async (test) => {
  const found = await lost();
  await found.other.lease();
  await found.other.finish('found', { result: { id: 'x' } });
  test.match(await actionRow(sql, found.id), { status: 'succeeded', result: { id: 'x' } });
  const absent = await lost();
  await absent.other.lease();
  await absent.other.finish('absent');
  test.match(await actionRow(sql, absent.id), { status: 'failed', error: { code: 'not_applied' } });
});

scenario(
  'a look-up that shows nothing is made again with growing pauses, then a person has to find out',
  async (test) => {
    const { by, id, other } = await lost();
    const pauses: number[] = [];
    for (let looks = 0; looks < 6; looks += 1) {
      await other.lease();
      await other.finish('none');
      const { rows } = await sql.owner.query(
        'select round(extract(epoch from due_at - updated_at))::int as pause from app.actions where id = $1',
        [id],
      );
      pauses.push(rows[0].pause);
      test.match(await other.finish('none'), { action: { status: 'executing', look_up_count: looks + 1 } }, 'a repeat');
      await passTime(sql, id);
    }
    test.same(pauses, [5, 10, 20, 40, 60, 60]);
    await other.lease();
    await sql.owner.query(`update app.actions set look_up_until = now() where id = $1`, [id]);
    test.match(actionOf(await other.finish('none')), { status: 'unknown' });
    test.match(await itemsOf(sql, id), [{ kind: 'reconciliation', purpose: 'reconciliation', status: 'open' }]);
    test.same(await dueActions(sql, by.org, 'execute'), []);
  },
);

scenario('jobs that die at looking it up end it, and so does a connection that is gone', async (test) => {
  const dying = await lost();
  for (let looks = 0; looks < 10; looks += 1) {
    test.match(await jobOf(sql.jobs, dying.by.org, dying.id).lease(), { leased: true });
    await passTime(sql, dying.id);
  }
  test.match(await dying.other.lease(), { leased: true }, 'not before its time');
  await passTime(sql, dying.id);
  await sql.owner.query(`update app.actions set look_up_until = now() where id = $1`, [dying.id]);
  test.match(await dying.job.lease(), { leased: false, action: { status: 'unknown' } });
  const gone = await lost();
  const { organizationId } = gone.by.org;
  await transition(sql.api, 'integration_disconnect', { organizationId, integrationRef: gone.by.integration.id });
  test.match(await gone.other.lease(), { leased: false, action: { status: 'unknown' } });
  test.match(await itemsOf(sql, gone.id), [{ kind: 'reconciliation', status: 'open' }]);
});

scenario('what has changed since the proposal cancels it, with the reason', async (test) => {
  type Made = Awaited<ReturnType<typeof due>>;
  const set = (table: string, change: string) => (made: Made) =>
    sql.owner.query(`update app.${table} set ${change} where integration_id = $1`, [made.by.integration.id]);
  const changes: Record<string, (made: Made) => Promise<unknown>> = {
    suspended: ({ by }) => updateOrganization(sql.api, by.org, { status: 'suspended' }),
    disabled: ({ by }) =>
      transition(sql.api, 'integration_status_set', {
        organizationId: by.org.organizationId,
        integrationRef: by.integration.id,
        status: 'disabled',
      }),
    needs_reauthorization: set(
      'integration_connections',
      `reauthorization_reason = 'revoked', reauthorization_at = now()`,
    ),
    connection_replaced: set('integration_connections', `subject_hash = repeat('b', 64)`),
    scopes_missing: set('integration_connections', `granted_scopes = '["read"]'`),
    tool_disabled: set('integration_tools', 'enabled = false'),
    tool_changed: set('integration_tools', `digest = repeat('c', 64)`),
    provider_forbidden: ({ by }) =>
      updateOrganization(sql.api, by.org, { constraints: { allowedIntegrations: ['github'] } }),
    tool_policy: ({ by }) => allow(sql, by.org, 'integrations.read'),
    profile_disabled: ({ by }) => updateProfile(sql.api, by.org, { status: 'disabled' }),
    department: async ({ by: { org, integration } }) => {
      const place = { organizationId: org.organizationId, integrationRef: integration.id };
      await transition(sql.api, 'integration_update', { ...place, patch: { departments: ['support'] } });
      await updateProfile(sql.api, org, { kind: 'department', department: 'growth' });
    },
  };
  for (const [reason, change] of Object.entries(changes)) {
    const made = await due();
    await made.job.lease();
    await change(made);
    test.match(
      await made.job.begin(),
      { begun: false, action: { status: 'cancelled', reason: { code: reason } } },
      reason,
    );
    test.same(await dueActions(sql, made.by.org, 'execute'), [], reason);
  }
});

scenario('files that are not what was proposed cancel it', async (test) => {
  for (const [files, status] of [
    [[actionFile('body')], 'executing'],
    [[actionFile('body', 'other')], 'cancelled'],
    [[], 'cancelled'],
  ] as const) {
    const { job } = await due({ files: [actionFile('body')] });
    test.match(await job.lease(), { storageKeys: { body: actionFile('body').storageKey } });
    test.match(actionOf(await job.begin(files)), {
      status,
      reason: status === 'cancelled' ? { code: 'file_changed' } : null,
    });
  }
});

scenario('an approval that is required by now is asked for, and one that was given counts', async (test) => {
  const { by, id, job, other } = await due();
  await job.lease();
  await updateOrganization(sql.api, by.org, { constraints: { approvalRequiredForRisk: ['external'] } });
  test.match(await job.begin(), {
    begun: false,
    action: { status: 'awaiting_approval', requires_approval: true, reason: { code: 'approval_required' } },
  });
  test.match(await itemsOf(sql, id), [{ kind: 'approval', status: 'open' }]);
  await approve(sql.api, by.org, id);
  test.match(await refusal(job.begin()), taken, 'the lease of before is no more');
  await other.lease();
  test.match(await other.begin(), { begun: true });
});

scenario('while its provider fails it waits for the next look at the connection', async (test) => {
  const { by, id, job } = await due();
  await job.lease();
  const look = (at: string) =>
    sql.owner.query(
      `update app.integration_connections set degraded_at = now(), degraded_code = 'provider_failed',
         check_due_at = now() + $2::interval where integration_id = $1`,
      [by.integration.id, at],
    );
  for (const [next, minutes] of [
    ['5 minutes', 5],
    ['1 day', 15],
  ] as const) {
    await look(next);
    test.match(await job.begin(), { begun: false, action: { status: 'approved' } });
    const { rows } = await sql.owner.query(
      'select round(extract(epoch from due_at - now()) / 60)::int as minutes from app.actions where id = $1',
      [id],
    );
    test.same(rows, [{ minutes }]);
    test.match(await refusal(job.begin()), taken);
    await passTime(sql, id);
    await job.lease();
  }
  await look('-1 second');
  test.match(await job.begin(), { begun: true });
});

scenario('a cancel that comes first wins, one that comes after the intent leaves it', async (test) => {
  const first = await due();
  await first.job.lease();
  await cancelTask(sql.api, first.by.org, first.by.run.taskId);
  test.match(await refusal(first.job.begin()), taken);
  const session = await openSession(test, sql, 'runner_jobs');
  const second = await due();
  await second.job.lease();
  await session.begin();
  await jobOf(session, second.by.org, second.id, second.job.leaseId).begin();
  const owner = await openSession(test, sql);
  const cancelled = cancelTask(owner, second.by.org, second.by.run.taskId);
  await owner.waits();
  await session.commit();
  await cancelled;
  test.match(await actionRow(sql, second.id), { status: 'executing' });
  await second.job.finish('succeeded', { result: {} });
  test.match(await actionRow(sql, second.id), { status: 'succeeded' });
});

scenario('another organization leases and ends nothing', async (test) => {
  const { id, job } = await due();
  const elsewhere = await createProposer(sql);
  const stranger = jobOf(sql.jobs, elsewhere.org, id, job.leaseId);
  await job.lease();
  const missing = { status: 404, code: 'action_not_found' };
  for (const call of [stranger.lease, stranger.begin, stranger.release, () => stranger.finish('succeeded')]) {
    test.match(await refusal(call()), missing);
  }
  test.match(await refusal(jobOf(sql.jobs, elsewhere.org, randomUUID()).lease()), missing);
});
