import t from 'tap';
import type { AgentProfile } from '../../../api/agent_profiles/schema.ts';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { startTestApp } from '../../support/app.ts';
import { makeOrganization, makeProfile } from '../../support/owner_api.ts';

const app = await startTestApp(t);
const { owner } = app;
await publishBuiltinCatalog(app.services.db);
const profiles = (organizationId: string, id = '') =>
  `/organizations/${organizationId}/agent-profiles${id && `/${id}`}`;

t.test('profiles page newest first, forward and back, under every filter', async (t) => {
  const { id } = await makeOrganization(owner);
  const kinds = [
    { kind: 'operator' },
    { kind: 'department', department: 'growth' },
    { kind: 'department', department: 'support', status: 'disabled' },
  ];
  const made: AgentProfile[] = [];
  for (let n = 0; n < 12; n += 1) made.unshift(await makeProfile(owner, id, kinds[n % 3]));
  const page = (query: Readonly<Record<string, string | number>>) => owner.get<AgentProfile[]>(profiles(id), { query });

  const walk = async (query: Readonly<Record<string, string | number>>) => {
    const pages = [await page(query)];
    for (let next = pages[0]?.body.pagination.nextCursor; next; next = pages.at(-1)?.body.pagination.nextCursor) {
      pages.push(await page({ ...query, cursor: next }));
    }
    const back = await page({ ...query, cursor: pages.at(-1)?.body.pagination.previousCursor ?? '' });
    t.strictSame(back.data, pages.at(-2)?.data, 'the way back');
    return pages.flatMap((reply) => reply.data);
  };
  t.strictSame(await walk({ limit: 5 }), made);
  const filters: [Record<string, string>, (one: AgentProfile) => boolean][] = [
    [{ kind: 'operator' }, (one) => one.kind === 'operator'],
    [{ status: 'disabled' }, (one) => one.status === 'disabled'],
    [{ department: 'growth' }, (one) => one.department === 'growth'],
    [{ kind: 'department', status: 'enabled', department: 'growth' }, (one) => one.department === 'growth'],
  ];
  for (const [query, holds] of filters) {
    t.strictSame(await walk({ ...query, limit: 3 }), made.filter(holds), JSON.stringify(query));
  }
  t.strictSame((await page({ department: 'engineering' })).data, []);
  t.match((await page({})).body.pagination, { limit: 50, hasNextPage: false });

  const cursor = (await page({ limit: 5 })).body.pagination.nextCursor ?? '';
  const refused = { status: 400, code: 'validation_failed' };
  t.match(await page({ cursor, kind: 'chat' }), refused);
  const other = await makeOrganization(owner);
  t.match(await owner.get(profiles(other.id), { query: { cursor } }), refused, 'of another organization');
  t.match(await page({ kind: 'boss' }), refused);
  t.match(await page({ sortBy: 'name' }), refused);
});
