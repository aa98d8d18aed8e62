import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { AuditEntry } from '../../../api/audit/schema.ts';
import { expectSuccess, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { adminDecides, appendEntry, auditEntries, PLATFORM } from '../../support/audit_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { startIssuer } from '../../support/jwt.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const { owner } = app;
const path = (organizationId: string) => `/organizations/${organizationId}/audit`;

type Query = Readonly<Record<string, string | number | undefined>>;
const list = (organizationId: string, query: Query = {}) => owner.get<AuditEntry[]>(path(organizationId), { query });
const ids = async (organizationId: string, query: Query = {}) =>
  expectSuccess(await list(organizationId, query)).map(({ id }) => id);

/** An organization with this many entries: their ids, newest first. */
async function withEntries(count: number): Promise<{ organizationId: string; newest: string[] }> {
  const { organizationId } = await createTestOrganization(sql);
  for (let n = 0; n < count; n += 1) {
    const fields = { action: n % 2 ? 'task.cancel' : 'task.retry', actorKind: n % 3 ? 'owner' : 'admin' };
    await appendEntry(sql.api, organizationId, fields);
  }
  const newest = (await auditEntries(sql, organizationId)).map(({ id }) => id).reverse();
  return { organizationId, newest };
}

t.test('an entry says who decided what, about what, with what, and how it ended', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  test.same(expectSuccess(await list(organizationId)), []);
  await adminDecides(sql.admin, 'dispatch_stop', organizationId);
  await appendEntry(sql.api, organizationId, {
    arguments: { note: 'x', apiKey: 'hidden' },
    response: { problem: { status: 409, code: 'state_conflict', message: 'm' } },
  });
  test.match(expectSuccess(await list(organizationId)), [
    {
      organizationId,
      actor: { kind: 'owner', name: 'someone' },
      action: 'task.create',
      subject: { kind: 'task', id: 'x' },
      arguments: { note: 'x', apiKey: '[left out]' },
      outcome: 'refused',
      code: 'state_conflict',
      result: {},
      requestId: null,
    },
    {
      organizationId,
      createdAt: String,
      actor: { kind: 'admin', name: 'night-shift' },
      action: 'dispatch.stop',
      subject: { kind: 'organization', id: organizationId },
      arguments: {},
      outcome: 'done',
      code: null,
      result: { publishedRunRequests: 0 },
      requestId: 'request-1',
    },
  ]);
});

t.test('pages lead there and back, newest first', async (test) => {
  const { organizationId, newest } = await withEntries(7);
  const first = await list(organizationId, { limit: 3 });
  test.same(
    first.data.map(({ id }) => id),
    newest.slice(0, 3),
  );
  test.match(first.body.pagination, { hasNextPage: true, hasPreviousPage: false, previousCursor: null });
  const second = await list(organizationId, { limit: 3, cursor: String(first.body.pagination.nextCursor) });
  test.same(
    second.data.map(({ id }) => id),
    newest.slice(3, 6),
  );
  await appendEntry(sql.api, organizationId);
  const third = await list(organizationId, { limit: 3, cursor: String(second.body.pagination.nextCursor) });
  test.same(
    third.data.map(({ id }) => id),
    newest.slice(6),
  );
  test.match(third.body.pagination, { hasNextPage: false, hasPreviousPage: true, nextCursor: null });
  const back = await list(organizationId, { limit: 3, cursor: String(third.body.pagination.previousCursor) });
  test.same(back.data, second.data);
  const start = await list(organizationId, { limit: 3, cursor: String(back.body.pagination.previousCursor) });
  test.same(start.data, first.data);
  test.equal(start.body.pagination.hasPreviousPage, true, 'the newer entry is before it');
});

t.test('entries of one microsecond are all shown, once', async (test) => {
  const { organizationId } = await createTestOrganization(sql);
  await sql.owner.query(
    `insert into app.audit_entries (organization_id, created_at, actor_kind, actor, action, subject_kind, outcome)
     select $1, '2035-01-01', 'owner', 'me', 'task.create', 'task', 'done' from generate_series(1, 9)`,
    [organizationId],
  );
  const seen: string[] = [];
  for (let cursor: string | undefined, more = true; more; ) {
    const page = await list(organizationId, { limit: 2, cursor });
    seen.push(...page.data.map(({ id }) => id));
    cursor = page.body.pagination.nextCursor ?? undefined;
    more = cursor !== undefined;
  }
  test.equal(seen.length, 9);
  test.equal(new Set(seen).size, 9);
});

t.test('filters by action, kind of actor and time', async (test) => {
  const { organizationId, newest } = await withEntries(12);
  const entries = (await auditEntries(sql, organizationId)).reverse();
  const expected = (keep: (entry: (typeof entries)[number]) => boolean) => entries.filter(keep).map(({ id }) => id);
  test.same(
    await ids(organizationId, { action: 'task.cancel' }),
    expected(({ action }) => action === 'task.cancel'),
  );
  test.same(
    await ids(organizationId, { actorKind: 'admin' }),
    expected((entry) => entry.actor_kind === 'admin'),
  );
  test.same(
    await ids(organizationId, { actorKind: 'admin', action: 'task.retry' }),
    expected((entry) => entry.actor_kind === 'admin' && entry.action === 'task.retry'),
  );
  test.same(await ids(organizationId, { actorKind: 'operator' }), []);
  test.same(await ids(organizationId, { action: 'organization.delete' }), []);
  const days = [1, 2, 3, 4];
  const org = await createTestOrganization(sql);
  for (const day of days) {
    await sql.owner.query(
      `insert into app.audit_entries (organization_id, created_at, actor_kind, actor, action, subject_kind, outcome)
       values ($1, $2, 'owner', 'me', 'task.create', 'task', 'done')`,
      [org.organizationId, `2035-01-0${day}T00:00:00Z`],
    );
  }
  const found = async (query: Query) =>
    expectSuccess(await list(org.organizationId, query)).map(({ createdAt }) => Number(createdAt.slice(8, 10)));
  test.same(await found({ since: '2035-01-02T00:00:00Z' }), [4, 3, 2], 'since takes its moment in');
  test.same(await found({ until: '2035-01-03T00:00:00Z' }), [2, 1], 'until leaves it out');
  test.same(await found({ since: '2035-01-02T01:00:00+01:00', until: '2035-01-04T00:00:00Z' }), [3, 2]);
  test.same(await found({ since: '2035-01-04T00:00:00Z', until: '2035-01-01T00:00:00Z' }), []);
  const first = await list(org.organizationId, { limit: 1, until: '2035-01-04T00:00:00Z' });
  const next = { limit: 1, cursor: String(first.body.pagination.nextCursor) };
  test.match(await list(org.organizationId, next), { status: 400, code: 'validation_failed' }, 'of other filters');
  test.match(await list(org.organizationId, { ...next, until: '2035-01-04T00:00:00Z' }), { status: 200 });
  test.match(
    await list(organizationId, { ...next, until: '2035-01-04T00:00:00Z' }),
    { status: 400 },
    'of another list',
  );
  test.equal(newest.length, 12);
});

t.test('what the query gets wrong is named', async (test) => {
  const { organizationId } = await createTestOrganization(sql);
  const wrong: readonly [Query, string][] = [
    [{ action: 'task.explode' }, 'query.action'],
    [{ actorKind: 'agent' }, 'query.actorKind'],
    [{ since: 'yesterday' }, 'query.since'],
    [{ until: '2035-01-01' }, 'query.until'],
    [{ since: '0001-01-01T00:00:00Z' }, 'query.since'],
    [{ limit: 0 }, 'query.limit'],
    [{ limit: 201 }, 'query.limit'],
    [{ cursor: 'nonsense' }, 'cursor'],
    [{ offset: 1 }, 'query.offset'],
  ];
  for (const [query, where] of wrong) {
    const reply = await list(organizationId, query);
    test.match(reply, { status: 400, code: 'validation_failed' }, where);
    const [at = ''] = issuePaths(reply);
    test.ok(at === where || `query.${at}` === where, `${at} for ${where}`);
  }
  test.match(await owner.get('/organizations/none/audit'), { status: 400 });
  test.match(await owner.post(path(organizationId)), { status: 405, code: 'method_not_allowed' });
  test.match(await owner.delete(path(organizationId)), { status: 405 });
});

t.test('an organization that is not there, or deleted, has no log; the platform’s is nobody’s here', async (test) => {
  const missing = { status: 404, code: 'organization_not_found' };
  const { organizationId } = await withEntries(1);
  await transition(sql.api, 'organization_delete', { organizationId });
  await appendEntry(sql.api, PLATFORM);
  for (const id of [randomUUID(), organizationId, PLATFORM]) test.match(await list(id), missing);
});

t.test('members read the log of their organization alone', async (test) => {
  const issuer = await startIssuer(test);
  const { owner: anonymous } = await startTestApp(test, {
    database: app.database,
    config: { ownerAuth: issuer.ownerAuth },
  });
  const [one, two] = [await withEntries(2), await withEntries(3)];
  for (const [{ organizationId }, subject, role] of [
    [one, 'anna', 'owner'],
    [one, 'vic', 'viewer'],
    [two, 'bert', 'owner'],
  ] as const) {
    await transition(sql.api, 'organization_member_put', {
      organizationId,
      subject,
      role,
    });
  }
  const read = async (subject: string, organizationId: string) =>
    anonymous.as(await issuer.token(subject)).get<AuditEntry[]>(path(organizationId));
  for (const subject of ['anna', 'vic']) {
    test.same(
      (await read(subject, one.organizationId)).data.map(({ id }) => id),
      one.newest,
    );
    test.match(await read(subject, two.organizationId), { status: 404, code: 'organization_not_found' });
  }
  test.same(
    (await read('bert', two.organizationId)).data.map(({ id }) => id),
    two.newest,
  );
  test.match(await anonymous.get(path(one.organizationId)), { status: 401, code: 'owner_unauthorized' });
  test.match(await anonymous.as('nonsense').get(path(one.organizationId)), { status: 401 });
});
