import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import { callWith } from '../../../engine/db/function_text.ts';
import { agentPath, makeTask, ownerPath, refusalOf, runTask, sqlOf, workerOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createSecondProfile, createTestOrganization } from '../../support/fixtures.ts';
import { createChat } from '../chats/support.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const { owner: database } = app.database;

type Query = Readonly<Record<string, string | number | undefined>>;
const list = (org: { organizationId: string }, query: Query = {}) =>
  app.owner.get<Task[]>(ownerPath(org, '/tasks'), { query });

const full = await createTestOrganization(sql);

/** 120 tasks in one transaction: all of one `created_at`, priorities with ties, every third without a due date. */
await (async () => {
  const client = await database.connect();
  await client.query('begin');
  for (let n = 0; n < 120; n += 1) {
    const task = {
      title: `Task ${n}`,
      ownerProfileKey: full.profileKey,
      priority: (n * 7) % 5,
      ...(n % 3 === 0 ? {} : { dueAt: new Date(Date.UTC(2030, 0, 1 + (n % 4))).toISOString() }),
    };
    await callWith(client, 'task_create', { organizationId: full.organizationId, task, actor: { kind: 'owner' } });
  }
  await client.query('commit');
  client.release();
})();

/** All pages one way, from a cursor or from the beginning. */
async function walk(query: Query, way: 'nextCursor' | 'previousCursor', from?: string, org = full) {
  const pages: string[][] = [];
  let cursor = from;
  for (;;) {
    const { data, body } = await list(org, { ...query, cursor });
    pages.push(data.map((task) => task.id));
    const next = body.pagination[way];
    if (next === null || pages.length > 100) return { pages, last: body.pagination };
    cursor = next;
  }
}

t.test('120 tasks of one transaction page 50 at a time, each once, forward and back, by every sort', async (t) => {
  const { rows } = await database.query('select count(distinct created_at)::int as moments from app.tasks');
  t.same(rows, [{ moments: 1 }], 'all were created at the same moment');
  const orders: Record<string, string> = {
    createdAt: 'created_at',
    updatedAt: 'updated_at',
    priority: 'priority',
    dueAt: `coalesce(due_at, '9999-12-31Z')`,
    identifierNumber: 'identifier_number',
  };
  for (const [sortBy, column] of Object.entries(orders)) {
    for (const direction of ['asc', 'desc'] as const) {
      const { rows: wanted } = await database.query<{ id: string }>(
        `select id from app.tasks where organization_id = $1 order by ${column} ${direction}, id ${direction}`,
        [full.organizationId],
      );
      const ids = wanted.map((row) => row.id);
      const query = { sortBy, sortDirection: direction };
      const forward = await walk(query, 'nextCursor');
      t.same(forward.pages, [ids.slice(0, 50), ids.slice(50, 100), ids.slice(100)], `${sortBy} ${direction} forward`);
      const back = await walk(query, 'previousCursor', forward.last.previousCursor ?? '');
      t.same(back.pages, [ids.slice(50, 100), ids.slice(0, 50)], `${sortBy} ${direction} back`);
    }
  }
});

t.test('pages of large tasks end early, and still show each once, forward and back', async (t) => {
  const org = await createTestOrganization(sql);
  const made: string[] = [];
  for (const letter of 'abcdefghij') {
    // Repeated text takes little room on the disk; what counts is the response.
    const text = letter.repeat(180_000);
    const inputs = [1, 2, 3, 4, 5].map((n) => ({ kind: 'inline', path: `${n}.txt`, text }));
    made.unshift((await makeTask(app, org, { spec: { inputs } })).id);
  }
  const forward = await walk({ limit: 200 }, 'nextCursor', undefined, org);
  t.same(forward.pages, [made.slice(0, 5), made.slice(5)]);
  const back = await walk({ limit: 200 }, 'previousCursor', forward.last.previousCursor ?? '', org);
  t.same(back.pages, [made.slice(0, 5)]);
  const one = await list(org, { limit: 1 });
  t.match(one.body.pagination, { hasNextPage: true, hasPreviousPage: false });
});

t.test('the page says where it stands, and the default is newest first', async (t) => {
  const first = await list(full);
  t.equal(first.data.length, 50);
  t.same(
    first.data.map((task) => task.id),
    (await list(full, { sortBy: 'createdAt', sortDirection: 'desc', limit: 50 })).data.map((task) => task.id),
  );
  const { nextCursor, ...rest } = first.body.pagination;
  t.same(rest, { cursor: null, limit: 50, previousCursor: null, hasNextPage: true, hasPreviousPage: false });
  const second = await list(full, { cursor: nextCursor ?? '' });
  t.match(second.body.pagination, { cursor: nextCursor, limit: 50, hasNextPage: true, hasPreviousPage: true });
  const back = await list(full, { cursor: second.body.pagination.previousCursor ?? '' });
  t.same(back.data, first.data, 'the previous cursor leads back to the same page');
  t.equal((await list(full, { limit: 200 })).data.length, 120);
  t.equal((await list(full, { limit: 1 })).data.length, 1);
});

t.test('tasks that come and change while one pages neither repeat nor hide the others', async (t) => {
  const org = await createTestOrganization(sql);
  const made: string[] = [];
  for (let n = 0; n < 6; n += 1) made.push((await makeTask(app, org)).id);
  const first = await list(org, { limit: 2 });
  await makeTask(app, org);
  await app.owner.post(ownerPath(org, `/tasks/${made[0]}/cancel`));
  const second = await list(org, { limit: 4, cursor: first.body.pagination.nextCursor ?? '' });
  t.same(
    [...first.data, ...second.data].map((task) => task.id),
    made.toReversed(),
  );
});

t.test('a cursor fits its sort, direction, filters and list alone', async (t) => {
  const cursor = (await list(full)).body.pagination.nextCursor ?? '';
  const other = await createTestOrganization(sql);
  t.equal((await list(full, { cursor, limit: 3 })).status, 200, 'the limit may change');
  const changed: Record<string, Query> = {
    sort: { sortBy: 'priority' },
    direction: { sortDirection: 'asc' },
    filter: { status: 'pending' },
    'another filter': { rootTaskId: randomUUID() },
  };
  for (const [name, query] of Object.entries(changed)) {
    t.equal(refusalOf(await list(full, { ...query, cursor })), '400 validation_failed invalid_cursor', name);
  }
  t.equal(refusalOf(await list(other, { cursor })), '400 validation_failed invalid_cursor', 'another organization');
  const runs = await app.owner.get(ownerPath(full, '/runs'), { query: { cursor } });
  t.equal(refusalOf(runs), '400 validation_failed invalid_cursor', 'another list');
  const decoded = Buffer.from(cursor, 'base64url').toString('utf8');
  const broken = [
    `${cursor.slice(0, -3)}AAA`,
    Buffer.from(decoded.replace('"n"', '"p"')).toString('base64url'),
    Buffer.from(decoded.replace('"n",0', '"n",1')).toString('base64url'),
    Buffer.from('[]').toString('base64url'),
    Buffer.from('null').toString('base64url'),
    'x',
    '%',
    "'; drop table app.tasks; --",
    'x'.repeat(2000),
  ];
  for (const wrong of broken) {
    t.equal(refusalOf(await list(full, { cursor: wrong })), '400 validation_failed invalid_cursor', wrong.slice(0, 40));
  }
  t.match(refusalOf(await list(full, { cursor: 'x'.repeat(2001) })), '400 validation_failed too_big');
  t.match(refusalOf(await list(full, { cursor: '' })), '400 validation_failed too_small');
});

t.test('wrong query values are refused by name', async (t) => {
  const wrong: Record<string, string[]> = {
    limit: ['0', '201', '-1', '1.5', '1e2', 'x', '', '99999999999999999999', ' 1'],
    sortBy: ['title', 'created_at', '', 'id; select 1'],
    sortDirection: ['up', 'DESC'],
    status: ['open', 'Pending', 'pending,blocked'],
    kind: ['epic'],
    phase: ['closing'],
    ownerAgentProfileId: ['growth', 'null'],
    parentId: ['T-1'],
    rootTaskId: ['x'],
    sourceChatId: ['x'],
    unknown: ['1'],
    Status: ['pending'],
  };
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values) {
      const reply = await list(full, { [name]: value });
      t.equal(reply.status, 400, `${name}=${value}`);
      t.equal(reply.body.error.issues?.[0]?.path, name);
    }
  }
  const twice = await app.owner.get(`${ownerPath(full, '/tasks')}?status=pending&status=blocked`);
  t.equal(twice.status, 400, 'a parameter given twice');
});

t.test('each filter selects what it says, and they go together', async (t) => {
  const org = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, org);
  const { id: chat } = await createChat(app, org);
  const root = await makeTask(app, org, { kind: 'initiative' });
  const child = await makeTask(app, org, { parentId: root.id, scheduledAt: '2099-01-01T00:00:00Z' });
  const talked = await makeTask(app, second, { sourceChatId: chat });
  const done = await runTask(app, org);
  await workerOf(app, done).complete();
  const found = async (query: Query) => (await list(org, query)).data.map((task) => task.id);
  t.same(await found({ status: 'completed' }), [done.taskId]);
  t.same(await found({ status: 'blocked' }), [child.id, root.id]);
  t.same(await found({ kind: 'initiative' }), [root.id]);
  t.same(await found({ phase: 'closed' }), [done.taskId]);
  t.same(await found({ ownerAgentProfileId: second.profileId.toUpperCase() }), [talked.id]);
  t.same(await found({ parentId: root.id }), [child.id]);
  t.same(await found({ rootTaskId: root.id }), [child.id, root.id]);
  t.same(await found({ sourceChatId: chat }), [talked.id]);
  t.same(await found({ rootTaskId: root.id, kind: 'task', status: 'blocked', phase: 'execute' }), [child.id]);
  t.same(await found({ rootTaskId: root.id, status: 'completed' }), []);
  t.same(await found({ rootTaskId: randomUUID() }), []);
  const empty = await list(org, { status: 'failed' });
  t.same(empty.body.pagination, {
    cursor: null,
    limit: 50,
    nextCursor: null,
    previousCursor: null,
    hasNextPage: false,
    hasPreviousPage: false,
  });
});

t.test('a filter by another organization’s ids finds nothing, and agents see the same list', async (t) => {
  const org = await createTestOrganization(sql);
  const task = await makeTask(app, full, { kind: 'initiative' });
  t.same((await list(org, { rootTaskId: task.id })).data, []);
  t.same((await list(org, { ownerAgentProfileId: full.profileId })).data, []);
  const asAgent = await app.service.get<Task[]>(agentPath(full, '/tasks'), { query: { limit: 7, sortBy: 'priority' } });
  const asOwner = await list(full, { limit: 7, sortBy: 'priority' });
  t.same(asAgent.data, asOwner.data);
  t.same(asAgent.body.pagination, asOwner.body.pagination);
});
