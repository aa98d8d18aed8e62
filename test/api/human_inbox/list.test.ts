import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { InboxItem } from '../../../api/human_inbox/schema.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  makeTask,
  ownerPath,
  refusalOf,
  sqlOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const capacity = { maxConcurrentRuns: 20, limits: { maxConcurrentRuns: 20 } };
const newOrganization = (key = 'operator') => createTestOrganization(sql, { key, ...capacity });

type At = Pick<TestOrganization, 'organizationId'>;
const inbox = (at: At, rest = '') => ownerPath(at, `/human-inbox${rest}`);
const list = (at: At, query: Record<string, string | number> = {}) => app.owner.get<InboxItem[]>(inbox(at), { query });
const respond = (at: At, id: string, body: Fields) => app.owner.post<InboxItem>(inbox(at, `/${id}/respond`), body);
const acknowledge = (at: At, id: string) => app.owner.post<InboxItem>(inbox(at, `/${id}/acknowledge`));
const ask = (at: At, ref: string, fields: Fields = {}, client = app.service) =>
  client.post<InboxItem>(agentPath(at, `/tasks/${ref}/human-inbox`), { kind: 'question', title: 'Which?', ...fields });
const summary = async (at: At) => expectSuccess(await app.owner.get<Fields>(ownerPath(at, '/inbox/summary')));

t.test('another organization’s inbox is its own', async (t) => {
  const [org, other] = [await newOrganization(), await newOrganization()];
  const task = await makeTask(app, org);
  const { id } = expectSuccess(await ask(org, task.id), 201);
  const nowhere = { organizationId: randomUUID() };
  for (const [at, code] of [
    [other, '404 human_inbox_item_not_found'],
    [nowhere, '404 organization_not_found'],
  ] as const) {
    t.equal(refusalOf(await app.owner.get(inbox(at, `/${id}`))), code);
    t.equal(refusalOf(await respond(at, id, { response: 'x' })), code);
    t.equal(refusalOf(await acknowledge(at, id)), code);
  }
  t.equal(refusalOf(await app.owner.get(inbox(org, `/${randomUUID()}`))), '404 human_inbox_item_not_found');
  t.same((await list(other)).data, []);
  t.match(await summary(other), { total: 0 });
  t.equal(refusalOf(await list(nowhere)), '404 organization_not_found');
  t.equal(refusalOf(await app.owner.get(ownerPath(nowhere, '/inbox/summary'))), '404 organization_not_found');
});

t.test('the list pages both ways, newest first', async (t) => {
  const org = await newOrganization();
  const task = await makeTask(app, org);
  const ids: string[] = [];
  for (let made = 0; made < 5; made += 1) ids.unshift(expectSuccess(await ask(org, task.id), 201).id);
  const first = await list(org, { limit: 2 });
  const second = await list(org, { limit: 2, cursor: first.body.pagination.nextCursor ?? '' });
  const third = await list(org, { limit: 2, cursor: second.body.pagination.nextCursor ?? '' });
  t.same(
    [first, second, third].flatMap(({ data }) => data.map(({ id }) => id)),
    ids,
  );
  t.notOk(third.body.pagination.hasNextPage);
  t.same((await list(org, { limit: 2, cursor: second.body.pagination.previousCursor ?? '' })).data, first.data);
  const cursor = first.body.pagination.nextCursor ?? '';
  t.match(refusalOf(await list(org, { limit: 2, kind: 'question', cursor })), /^400 validation_failed/);
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
