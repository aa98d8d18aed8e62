import { randomUUID } from 'node:crypto';
import t from 'tap';
import { z } from 'zod';
import { apiEndpoints } from '../../../api/app.ts';
import { uuid } from '../../../api/fields/ids.ts';
import { type Endpoint, endpoint, isStream } from '../../../api/http/endpoint.ts';
import type { StreamBody } from '../../../api/http/stream_body.ts';
import { ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { until } from '../../support/wait.ts';

const AT_ONCE = 4;

/** Stays in work until the test lets it go. */
const going = Promise.withResolvers<void>();
let inWork = 0;
const holding = endpoint({
  method: 'post',
  path: '/organizations/{organizationId}/held',
  audience: 'owner',
  tag: 'System',
  operationId: 'hold',
  summary: 'Takes long',
  costly: true,
  params: { organizationId: uuid },
  response: { data: z.object({}) },
  async handler() {
    inWork += 1;
    await going.promise;
    return {};
  },
});

const ofOrganization = apiEndpoints().filter(({ path }) => path.includes('{organizationId}'));
/** They walk from task to task. */
const WALKS = ['getTaskGraph', 'explainTask', 'explainTaskAsAgent'];

/** Waits for others than Postgres, or for the client; or reads far more than a page. */
function takesLong({ external, body, query, operationId }: Endpoint): boolean {
  return external === true || isStream<StreamBody>(body) || 'search' in query.shape || WALKS.includes(operationId);
}

const PLACES: Readonly<Record<string, string>> = { path: 'a.txt', taskRef: 'T-1', integrationRef: 'shop' };
const QUERIES: Readonly<Record<string, string>> = {
  search: 'word',
  fileName: 'a.md',
  mediaType: 'text/markdown',
  kind: 'file',
};

const app = await startTestApp(t, {
  endpoints: [...apiEndpoints(), holding],
  config: { databasePoolSize: 2 * AT_ONCE },
});
const org = await createTestOrganization(sqlOf(app));
const other = await createTestOrganization(sqlOf(app));

/** A valid request, about what need not be there. */
function send(costly: Endpoint, { organizationId } = org) {
  const { method, path, query, body, example, audience } = costly;
  const at = path.replace(/\{(\w+)\*?\}/g, (_, name) =>
    name === 'organizationId' ? organizationId : (PLACES[name] ?? randomUUID()),
  );
  const given = Object.entries(QUERIES).filter(([name]) => name in query.shape);
  const client = audience === 'agent' ? app.service : app.owner;
  const streamed = isStream<StreamBody>(body);
  const [first] = Object.values(example?.bodies ?? {});
  return client.send(
    method.toUpperCase(),
    given.length > 0 ? `${at}?${new URLSearchParams(given)}` : at,
    streamed ? 'bytes' : body && JSON.stringify(example?.body ?? first ?? {}),
    { headers: body ? { 'content-type': streamed ? (body.mediaTypes[0] ?? '') : 'application/json' } : {} },
  );
}

t.test('what waits for others, or reads much, is costly, and nothing else is', async (t) => {
  const names = (endpoints: readonly Endpoint[]) => endpoints.map(({ operationId }) => operationId).sort();
  t.same(names(ofOrganization.filter(({ costly }) => costly)), names(ofOrganization.filter(takesLong)));
});

t.test('of an organization that has as many in work as it may, each further one is refused', async (t) => {
  const held = Array.from({ length: AT_ONCE }, () => app.owner.post(ownerPath(org, '/held')));
  await until('they are in work', () => inWork === AT_ONCE);
  for (const costly of ofOrganization.filter(takesLong)) {
    const { operationId, path } = costly;
    const reply = await send(costly);
    const code = path.includes('/onboarding') && costly.audience === 'owner' ? 'request_failed' : 'too_many_requests';
    t.equal(refusalOf(reply), `429 ${code} too_many_requests`, operationId);
    t.equal(reply.headers.get('retry-after'), '1', operationId);
    t.not((await send(costly, other)).status, 429, `${operationId} of another organization`);
  }
  const all = await app.owner.get(ownerPath(org, '/chats'));
  t.equal(all.status, 200, 'a list without a search is not costly');
  going.resolve();
  await Promise.all(held);
});
