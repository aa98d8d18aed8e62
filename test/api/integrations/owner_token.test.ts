import { randomUUID } from 'node:crypto';
import t from 'tap';
import { refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { OWNER_TOKEN, startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { type Client, createClient } from '../../support/http.ts';
import { type Operation, readOpenApi } from '../../support/openapi.ts';

const app = await startTestApp(t);
const org = await createTestOrganization(sqlOf(app));

t.test('in open mode every change takes the owner’s token, and no read does', async (t) => {
  const nobody = createClient(app.url);
  const { operations } = await readOpenApi(nobody);
  const all = operations.filter(({ path }) => path.startsWith('/organizations/{organizationId}/integrations'));
  /** About an integration that is not there, which nobody learns without the token. */
  const send = ({ method, path }: Operation, client: Client) => {
    const named = { organizationId: org.organizationId, integrationRef: randomUUID() };
    const filled = path.replace(/\{(\w+)\}/g, (_all, name: keyof typeof named) => named[name]);
    return client.send(method, filled, method === 'GET' || method === 'DELETE' ? undefined : {});
  };
  const writes = all.filter(({ method }) => method !== 'GET');
  t.ok(writes.length >= 22, 'with those of each provider');
  for (const operation of writes) {
    for (const client of [nobody, nobody.as('a-token-that-nobody-has-0123456789abcdef'), app.service]) {
      t.equal(refusalOf(await send(operation, client)), '401 owner_unauthorized', operation.operationId);
    }
    const refused = refusalOf(await send(operation, nobody.as(OWNER_TOKEN)));
    t.match(refused, /^(400 validation_failed|404 integration_not_found)/, operation.operationId);
  }
  const { listIntegrations, ...reads } = Object.fromEntries(
    await Promise.all(
      all
        .filter((operation) => !writes.includes(operation))
        .map(async (operation) => [operation.operationId, await send(operation, nobody)] as const),
    ),
  );
  t.equal(listIntegrations?.status, 200);
  t.same(Object.keys(reads).toSorted(), ['getIntegration', 'listIntegrationProperties']);
  for (const [name, reply] of Object.entries(reads)) t.equal(refusalOf(reply), '404 integration_not_found', name);
});
