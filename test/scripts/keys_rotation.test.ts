import { randomBytes } from 'node:crypto';
import pg from 'pg';
import t from 'tap';
import { pseudonymsOf } from '../../engine/insights/pseudonyms.ts';
import { type EncryptionKey, openSecret, type SecretPlace, sealSecret } from '../../engine/secrets/index.ts';
import { recordsByKey, rotate } from '../../scripts/keys/rotation.ts';
import { openAs, type TearDown } from '../support/database.ts';
import { createTestOrganization, type TestOrganization } from '../support/fixtures.ts';
import { connect, createIntegration } from '../support/integration_fixtures.ts';
import { scenarios } from '../support/invariants.ts';
import { openSql, transition } from '../support/transitions.ts';
import { until } from '../support/wait.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const key = (id: string): EncryptionKey => ({ id, key: randomBytes(32) });

async function operator(test: TearDown): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: sql.url });
  await client.connect();
  test.teardown(() => client.end());
  await client.query('set role runner_global');
  return client;
}

/** An integration whose two secrets are really encrypted. */
async function encrypted(org: TestOrganization, keys: readonly EncryptionKey[]): Promise<SecretPlace[]> {
  const { id } = await createIntegration(sql, org);
  const places = ['access_token', 'refresh_token'].map((field) => ({
    organizationId: org.organizationId,
    integrationId: id,
    field,
    revision: 1,
  }));
  const secrets = places.map((place) => {
    const { keyId, wrappedKey, ciphertext } = sealSecret(keys, place, `the ${place.field} of ${id}`);
    return {
      field: place.field,
      keyId,
      wrappedKey: wrappedKey.toString('base64'),
      ciphertext: ciphertext.toString('base64'),
    };
  });
  await connect(sql.api, org, id, undefined, { secrets });
  return places;
}

async function opened(keys: readonly EncryptionKey[], place: SecretPlace): Promise<string> {
  const { secrets } = await transition(sql.api, 'integration_secrets_read', {
    organizationId: place.organizationId,
    integrationId: place.integrationId,
    connectionRevision: 1,
  });
  const stored = (secrets as Record<string, string>[]).find(({ field }) => field === place.field);
  const bytes = (name: string) => Buffer.from(stored?.[name] ?? '', 'base64');
  const sealed = { keyId: stored?.['keyId'] ?? '', wrappedKey: bytes('wrappedKey'), ciphertext: bytes('ciphertext') };
  return openSecret(keys, place, sealed);
}

scenario('all records of all tenants open with the new key alone, and a repeat has nothing to do', async (test) => {
  const [fresh, old] = [key('fresh'), key('old')];
  const places = [
    ...(await encrypted(await createTestOrganization(sql), [old])),
    ...(await encrypted(await createTestOrganization(sql), [old])),
  ];
  const client = await operator(test);
  test.same(await rotate(client, [fresh, old]), { rewrapped: 4, damaged: [] });
  for (const place of places) {
    test.equal(await opened([fresh], place), `the ${place.field} of ${place.integrationId}`);
  }
  const records = await recordsByKey(client);
  test.equal(records.get('fresh'), 4);
  test.notOk(records.has('old'));
  test.same(await rotate(client, [fresh, old]), { rewrapped: 0, damaged: [] });
});

scenario('one that is killed half-way is finished by the next', async (test) => {
  const [fresh, old] = [key('fresh2'), key('old2')];
  const org = await createTestOrganization(sql);
  for (let n = 0; n < 5; n += 1) await encrypted(org, [old]);
  // The connection ends at the fourth record, in the middle of its transaction.
  const killed = new pg.Client({ connectionString: sql.url });
  killed.on('error', () => {});
  await killed.connect();
  test.teardown(() => killed.end().catch(() => undefined));
  const { rows } = await killed.query('select pg_backend_pid() as pid');
  const session = await operator(test);
  const blocker = new pg.Client({ connectionString: sql.url });
  await blocker.connect();
  test.teardown(() => blocker.end());
  await blocker.query('begin');
  await blocker.query(
    `select 1 from app.integration_secrets where (integration_id, field) = (
       select integration_id, field from app.integration_secrets where key_id = 'old2'
       order by organization_id, integration_id, field offset 3 limit 1) for update`,
  );
  const rotating = rotate(killed, [fresh, old]).then(
    () => 'done',
    () => 'killed',
  );
  await until('the rotation waits', async () => {
    const { rows: found } = await sql.owner.query('select cardinality(pg_blocking_pids($1)) as by', [rows[0].pid]);
    return found[0]?.by > 0;
  });
  await blocker.query('select pg_terminate_backend($1)', [rows[0].pid]);
  test.equal(await rotating, 'killed');
  await blocker.query('rollback');
  test.equal((await recordsByKey(session)).get('fresh2'), 3);
  test.same(await rotate(session, [fresh, old]), { rewrapped: 7, damaged: [] });
  test.notOk((await recordsByKey(session)).has('old2'));
});

scenario('a damaged record is named and stays, and one of a key that is missing is left alone', async (test) => {
  const [fresh, old, gone] = [key('fresh3'), key('old3'), key('gone3')];
  const org = await createTestOrganization(sql);
  const [damaged, whole] = await encrypted(org, [old]);
  await encrypted(org, [gone]);
  await sql.owner.query(
    `update app.integration_secrets set wrapped_key = set_byte(wrapped_key, 39, get_byte(wrapped_key, 39) # 255)
     where integration_id = $1 and field = $2`,
    [damaged?.integrationId, damaged?.field],
  );
  const client = await operator(test);
  const result = await rotate(client, [fresh, old]);
  test.equal(result.rewrapped, 1);
  test.match(result.damaged, [{ integrationId: damaged?.integrationId, field: damaged?.field }]);
  test.equal(result.damaged.length, 1);
  test.ok(whole && (await opened([fresh], whole)));
  const records = await recordsByKey(client);
  test.match({ old: records.get('old3'), gone: records.get('gone3') }, { old: 1, gone: 2 });
});

scenario('what a process with the key of before stores meanwhile is wrapped too', async (test) => {
  const [fresh, old] = [key('fresh4'), key('old4')];
  const org = await createTestOrganization(sql);
  await encrypted(org, [old]);
  const client = await operator(test);
  // Behind the place where the pass is: ids rise, and the first pass reads at once what there is.
  const places: SecretPlace[][] = [];
  const query = client.query.bind(client);
  let asked = 0;
  Object.assign(client, {
    async query(text: string, values: unknown[]) {
      const result = await query(text, values);
      asked += 1;
      if (asked === 2) places.push(await encrypted(org, [old]));
      return result;
    },
  });
  await rotate(client, [fresh, old]);
  test.equal(places.length, 1);
  test.notOk((await recordsByKey(client)).has('old4'));
});

scenario('pseudonyms of customers stay the same, and are others in each organization', async (test) => {
  const [fresh, old] = [key('fresh'), key('old')];
  const db = openAs(sql.url, { role: 'runner_jobs', size: 2, applicationName: 'test pseudonyms' });
  test.teardown(() => db.end());
  const orgs = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const words = async (keys: readonly EncryptionKey[]) =>
    Promise.all(orgs.map(async ({ organizationId }) => (await pseudonymsOf(db, keys, organizationId))('customer 7')));
  const [both, again] = await Promise.all([words([old]), words([old])]);
  test.same(again, both, 'two that make a key at once have the one that is kept');
  test.not(both[0], both[1]);
  test.match(both[0], /^[0-9a-f]{32}$/);
  const client = await operator(test);
  test.equal((await recordsByKey(client)).get('old'), 2);
  test.same(await rotate(client, [fresh, old]), { rewrapped: 2, damaged: [] });
  test.equal((await recordsByKey(client)).get('old'), undefined);
  test.same(await words([fresh]), both);
  test.same(await rotate(client, [fresh, old]), { rewrapped: 0, damaged: [] }, 'a repeat');
});
