import t from 'tap';
import { createTestOrganization } from '../../support/fixtures.ts';
import { beginFlow, connect, createIntegration, sealed } from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

function wrapped(text: string): string {
  return Buffer.from(text).toString('base64');
}

async function toRewrap(keyId: string, after: JsonObject | null, limit: number) {
  const { secrets } = await transition(sql.owner, 'integration_secrets_to_rewrap', { keyIds: [keyId], after, limit });
  return secrets as readonly JsonObject[];
}

async function records(keyId: string) {
  const { keys } = await transition(sql.owner, 'integration_secrets_by_key', {});
  return (keys as readonly JsonObject[]).find((key) => key['keyId'] === keyId)?.['records'] ?? 0;
}

scenario('a rotation goes over the secrets of all tenants, and wraps what is still as it was read', async (test) => {
  const secrets = ['credential', 'token'].map((field) => ({ ...sealed(field), keyId: 'old' }));
  const orgs = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const connected = [];
  for (const org of orgs) {
    const { id } = await createIntegration(sql, org);
    await connect(sql.api, org, id, undefined, { secrets });
    connected.push({ org, id });
  }
  test.equal(await records('old'), 4);
  const seen: JsonObject[] = [];
  for (
    let page = await toRewrap('old', null, 3);
    page.length > 0;
    page = await toRewrap('old', seen.at(-1) ?? null, 3)
  ) {
    seen.push(...page);
  }
  test.equal(seen.length, 4, 'also where none is wrapped anew');
  const rewrap = (secret: JsonObject, organizationId = String(secret['organizationId'])) =>
    transition(sql.owner, 'integration_secret_rewrap', {
      organizationId,
      secret,
      keyId: 'new',
      wrappedKey: wrapped('wrapped anew'),
    });
  const [first, ...others] = seen;
  const foreign = orgs.find((org) => org.organizationId !== first?.['organizationId']);
  if (!first || !foreign) throw new Error('there are two organizations with secrets');
  test.same(await rewrap(first, foreign.organizationId), { rewrapped: false }, 'another tenant’s');
  test.same(await rewrap({ ...first, wrappedKey: wrapped('another') }), { rewrapped: false }, 'stored anew meanwhile');
  test.same(await rewrap(first), { rewrapped: true });
  test.same(await rewrap(first), { rewrapped: false }, 'a repeat');
  for (const secret of others) test.same(await rewrap(secret), { rewrapped: true });
  test.equal(await records('old'), 0);
  test.equal(await records('new'), 4);
  for (const { org, id } of connected) {
    const read = await transition(sql.api, 'integration_secrets_read', {
      organizationId: org.organizationId,
      integrationId: id,
      connectionRevision: 1,
    });
    const { ciphertext } = sealed('credential');
    test.match(read, {
      secrets: [{ keyId: 'new', wrappedKey: wrapped('wrapped anew'), ciphertext }, { keyId: 'new' }],
    });
  }
});

scenario('a key that a flow needs is counted too, and only operators count', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org);
  const before = Number(await records('k1'));
  await beginFlow(sql, org, id);
  test.equal(await records('k1'), before + 1);
  for (const login of [sql.api, sql.jobs, sql.admin]) {
    await test.rejects(transition(login, 'integration_secrets_by_key', {}), { code: '42501' });
    const every = { keyIds: ['k1'], after: null, limit: 1 };
    await test.rejects(transition(login, 'integration_secrets_to_rewrap', every), { code: '42501' });
  }
});
