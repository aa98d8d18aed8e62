import t from 'tap';
import { publishBuiltinCatalog } from '../../../../engine/catalog/index.ts';
import { startTestApp } from '../../../support/app.ts';
import { readOpenApi } from '../../../support/openapi.ts';
import {
  bodies,
  encodings,
  goodAt,
  isName,
  placesOfBody,
  placesOfUrl,
  sendPath,
  writtenAt,
} from '../../../support/path_requests.ts';
import { around, folderOf, layOut, leavingPaths, oddNames } from '../../../support/storage_escapes.ts';
import { makeWorld } from '../../../support/worlds.ts';

// What links in the storage lead to: path_links.test.ts.

const app = await startTestApp(t, { config: { logLevel: 'fatal' } });
await publishBuiltinCatalog(app.services.db);
const { operations, components } = await readOpenApi(app.owner);
const secret = await layOut(app);
const GIVEN_AWAY = /nobody’s to read|root:/;

t.test('every place of a body that holds a path is tried', async (t) => {
  for (const operation of operations) {
    const tried = Object.keys(bodies[operation.operationId] ?? {});
    t.same(tried.sort(), placesOfBody(operation, components).sort(), operation.operationId);
  }
  t.ok(operations.flatMap(placesOfUrl).length >= 11);
});

for (const operation of operations) {
  const inUrl = placesOfUrl(operation);
  const orgs = [...inUrl, ...placesOfBody(operation, components)];
  if (orgs.length === 0) continue;
  t.test(`${operation.method} ${operation.path}: no path gets out of the organization`, async (t) => {
    const world = await makeWorld(app, operation);
    const inside = folderOf(app, world['organizationId'] ?? '');
    const before = await around(app, inside);
    const leaving = leavingPaths(secret);
    for (const org of orgs) {
      const ways = inUrl.includes(org) ? encodings : encodings.slice(0, 1);
      for (const value of [...leaving, ...oddNames(secret)]) {
        for (const encode of ways) {
          const written = writtenAt(org, value, world, operation);
          const response = await sendPath(app, operation, world, { org, value: written, encode });
          const what = `${org} ${encode(value)}: ${response.status}`;
          if (response.status >= 500) t.fail(what);
          if (GIVEN_AWAY.test(response.body.toString())) t.fail(`${what} gives it away`);
          // Encoded twice, a path is a name.
          const refused = !isName(org) && encode !== encodings.at(-1) && leaving.includes(value);
          if (refused && response.status !== 400 && response.status !== 404) t.fail(`${what} is taken`);
        }
      }
    }
    t.same(await around(app, inside), before, 'nothing is written outside');
    for (const org of orgs) {
      // What is only read is still there.
      const fresh = operation.method === 'GET' ? world : await makeWorld(app, operation);
      const value = writtenAt(org, goodAt(org, fresh), fresh, operation);
      const { status } = await sendPath(app, operation, fresh, { org, value });
      t.ok(status < 400 || status === 409, `${org}: a good one is not refused for what it is (${status})`);
    }
  });
}
