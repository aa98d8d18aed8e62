import { randomUUID } from 'node:crypto';
import t from 'tap';
import { appendEntry, auditEntries, PLATFORM } from '../../support/audit_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);

t.test('an entry is never changed, by nobody', async (test) => {
  const { organizationId } = await createTestOrganization(sql);
  const id = await appendEntry(sql.api, organizationId);
  for (const statement of [
    `update app.audit_entries set actor = 'somebody else' where id = $1`,
    'delete from app.audit_entries where id = $1',
  ]) {
    await test.rejects(sql.owner.query(statement, [id]), { message: /never changed/ }, statement);
    for (const pool of [sql.api, sql.jobs, sql.admin]) {
      await test.rejects(pool.query(statement, [id]), { code: '42501' }, statement);
    }
  }
  await test.rejects(sql.owner.query('truncate app.audit_entries'), { message: /never changed/ });
  await appendEntry(sql.api, PLATFORM);
  await test.rejects(sql.owner.query('delete from app.audit_entries where organization_id = $1', [PLATFORM]), {
    message: /never changed/,
  });
  test.match(await auditEntries(sql, organizationId), [{ id, actor: 'someone', outcome: 'done', code: null }]);
});

t.test('not even a transition could change one', async (test) => {
  const { organizationId } = await createTestOrganization(sql);
  await appendEntry(sql.api, organizationId);
  const session = await openSession(test, sql, 'owner');
  await session.begin();
  await session.query('set local role runner_scoped', []);
  await session.query(`select set_config('app.organization_id', $1, true)`, [organizationId]);
  await test.rejects(session.query(`update app.audit_entries set code = 'x'`, []), { code: '42501' });
  await session.rollback();
  await session.begin();
  await session.query('set local role runner_scoped', []);
  await session.query(`select set_config('app.organization_id', $1, true)`, [organizationId]);
  await test.rejects(session.query('delete from app.audit_entries', []), { message: /never changed/ });
  await session.rollback();
});

t.test('what was called with is kept without secrets, and where it is too large its size alone', async (test) => {
  const { organizationId } = await createTestOrganization(sql);
  const kept = async (given: Record<string, unknown>) => {
    const id = await appendEntry(sql.api, organizationId, { arguments: given });
    return (await auditEntries(sql, organizationId)).find((entry) => entry.id === id)?.arguments;
  };
  test.same(await kept({}), {});
  test.same(await kept({ a: 1, b: [true, null, []], c: { d: 'e' } }), { a: 1, b: [true, null, []], c: { d: 'e' } });
  const secrets = {
    password: 'x',
    apiKey: 'x',
    api_key: 'x',
    accessToken: 'x',
    clientSecret: { inner: 'x' },
    headers: { Authorization: 'x', accept: 'text/html' },
    list: [{ credential: 'x' }],
    maxTokens: 5,
  };
  const left = '[left out]';
  test.same(await kept(secrets), {
    password: left,
    apiKey: left,
    api_key: left,
    accessToken: left,
    clientSecret: left,
    headers: { Authorization: left, accept: 'text/html' },
    list: [{ credential: left }],
    maxTokens: 5,
  });
  test.same(await kept({ a: 'é'.repeat(8_000) }), { a: 'é'.repeat(8_000) });
  test.same(await kept({ a: 'é'.repeat(9_000) }), { bytes: 18_009 });
  test.match(
    await kept({ list: Array(1_000).fill({ token: 1 }) }),
    { bytes: Number },
    'which is shorter than its parts',
  );
});

t.test('a problem makes it refused, with its code', async (test) => {
  const { organizationId } = await createTestOrganization(sql);
  await appendEntry(sql.api, organizationId, {
    response: { problem: { status: 409, code: 'state_conflict', message: 'm' } },
  });
  test.match(await auditEntries(sql, organizationId), [{ outcome: 'refused', code: 'state_conflict' }]);
});

t.test('each tenant sees its own, the administration all or those of one', async (test) => {
  const [one, two] = [
    (await createTestOrganization(sql)).organizationId,
    (await createTestOrganization(sql)).organizationId,
  ];
  for (const organizationId of [one, two, PLATFORM]) await appendEntry(sql.api, organizationId);
  const seen = async (role: 'runner_api' | 'runner_admin', organizationId: string | undefined) => {
    const session = await openSession(test, sql, role);
    await session.begin();
    await session.query(`select set_config('app.organization_id', $1, true)`, [organizationId ?? '']);
    const { rows } = await session.query('select distinct organization_id from app.audit_entries', []);
    await session.rollback();
    return rows.map((row) => row['organization_id']);
  };
  test.same(await seen('runner_api', one), [one]);
  test.same(await seen('runner_api', undefined), []);
  test.same(await seen('runner_admin', two), [two]);
  const all = await seen('runner_admin', undefined);
  for (const organizationId of [one, two, PLATFORM]) test.ok(all.includes(organizationId));
});

t.test('nothing is written about an organization that is not there', async (test) => {
  const nowhere = randomUUID();
  await test.rejects(appendEntry(sql.api, nowhere), { code: 'RN404' });
  test.same(await auditEntries(sql, nowhere), []);
});

t.test('entries stay through a deletion, and go with the last step of the purge', async (test) => {
  const { organizationId } = await createTestOrganization(sql);
  await appendEntry(sql.api, organizationId);
  await transition(sql.api, 'organization_delete', { organizationId });
  await appendEntry(sql.api, organizationId, { action: 'organization.delete' });
  test.equal((await auditEntries(sql, organizationId)).length, 2);
  const last = await openSession(test, sql, 'runner_jobs');
  const purge = () => transition(last, 'organization_purge', { organizationId, limit: 100, forget: true });
  // A decision that was under way at the deletion, and commits when all else is gone.
  const late = await openSession(test, sql);
  await late.begin();
  await appendEntry(late, organizationId, { action: 'task.cancel' });
  const purging = (async () => {
    while (!(await purge())['done']);
  })();
  await last.waits();
  await late.commit();
  await purging;
  test.same(await auditEntries(sql, organizationId), []);
  test.same(await purge(), { done: true, gone: true });
  const refused = await refusal(
    transition(sql.api, 'audit_append', {
      organizationId,
      actorKind: 'owner',
      actor: 'me',
      action: 'task.cancel',
      subjectKind: 'task',
      subjectId: null,
      arguments: {},
    }),
  );
  test.equal(refused.code, 'organization_not_found', 'nor comes one after it');
});
