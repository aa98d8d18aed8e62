import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createOrganization, createTestOrganization, taskCreate } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import {
  type Connection,
  type JsonObject,
  openSession,
  openSql,
  refusal,
  transition,
} from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

type Slot = Readonly<{ organizationId: string; caller?: string; method?: string; path?: string; key?: string }>;

function slotArguments(slot: Slot) {
  return {
    organizationId: slot.organizationId,
    caller: slot.caller ?? 'operator',
    method: slot.method ?? 'POST',
    path: slot.path ?? '/x',
    key: slot.key ?? 'k',
  };
}

function begin(connection: Connection, slot: Slot, bodyHash = 'h') {
  return transition(connection, 'idempotency_begin', { ...slotArguments(slot), bodyHash });
}

function finish(connection: Connection, slot: Slot, body: JsonObject = { made: 1 }, claimId?: string) {
  return transition(connection, 'idempotency_finish', { ...slotArguments(slot), status: 201, body, claimId });
}

function claimAs(claimId: string, slot: Slot, bodyHash = 'h') {
  return transition(sql.api, 'idempotency_begin', { ...slotArguments(slot), bodyHash, claimId, claimSeconds: 300 });
}

async function claim(slot: Slot, bodyHash = 'h'): Promise<string> {
  const claimId = randomUUID();
  const begun = await claimAs(claimId, slot, bodyHash);
  if (!('fresh' in begun)) throw new Error('the key is not free');
  return claimId;
}

function clean(organizations: number, rows: number, after: string | null = null) {
  return transition(sql.jobs, 'idempotency_keys_clean', { organizations, rows, after });
}

const IN_USE = { inUse: true };

scenario('the first response of a key is given again to the same call', async (test) => {
  const slot = { organizationId: await createOrganization(sql) };
  test.same(await begin(sql.api, slot), { fresh: true });
  test.same(await finish(sql.api, slot), { stored: true });
  test.same(await begin(sql.api, slot), { replay: { statusCode: 201, body: { made: 1 } } });
  test.match(await refusal(begin(sql.api, slot, 'other body')), {
    status: 409,
    code: 'idempotency_key_reused',
    raised: true,
  });
});

scenario('a key belongs to its organization, caller, method and path', async (test) => {
  const slot = { organizationId: await createOrganization(sql) };
  await begin(sql.api, slot);
  for (const other of [
    { organizationId: await createOrganization(sql) },
    { ...slot, caller: 'owner:someone' },
    { ...slot, method: 'PUT' },
    { ...slot, path: '/y' },
    { ...slot, key: 'k2' },
  ]) {
    test.same(await begin(sql.api, other, 'other body'), { fresh: true });
  }
});

scenario(
  'a second call hears that the key is in use, and later gets the response without doing the work',
  async (test) => {
    const org = await createTestOrganization(sql);
    const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
    await one.begin();
    test.same(await begin(one, org), { fresh: true });
    test.same(await begin(two, org), IN_USE);
    await taskCreate(one, org, { title: 'the work' });
    await finish(one, org, { title: 'the work' });
    await one.commit();
    test.same(await begin(two, org), { replay: { statusCode: 201, body: { title: 'the work' } } });
  },
);

scenario('a second call with another body is refused once the first has ended', async (test) => {
  const slot = { organizationId: await createOrganization(sql) };
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await begin(one, slot);
  test.same(await begin(two, slot, 'other body'), IN_USE);
  await finish(one, slot);
  await one.commit();
  test.match(await refusal(begin(two, slot, 'other body')), { status: 409, code: 'idempotency_key_reused' });
});

scenario('when the first call is rolled back, the second does the work', async (test) => {
  const org = await createTestOrganization(sql);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await begin(one, org);
  await taskCreate(one, org);
  await two.begin();
  test.same(await begin(two, org, 'other body'), IN_USE);
  await one.rollback();
  test.same(await begin(two, org, 'other body'), { fresh: true });
  await finish(two, org);
  await two.commit();
  test.same(await begin(sql.api, org, 'other body'), { replay: { statusCode: 201, body: { made: 1 } } });
});

scenario('a claim is of one call until it has its response, runs out or is given back', async (test) => {
  const slot = { organizationId: await createOrganization(sql) };
  const first = await claim(slot);
  test.same(await claimAs(first, slot), { fresh: true }, 'the same claim again, after a response that was lost');
  test.same(await claimAs(randomUUID(), slot), IN_USE);
  test.match(await refusal(claim(slot, 'other body')), { code: 'idempotency_key_reused' });
  await sql.owner.query(
    'update app.idempotency_keys set claimed_until = clock_timestamp() where organization_id = $1',
    [slot.organizationId],
  );
  const second = await claim(slot);
  test.not(second, first);
  test.match(await refusal(finish(sql.api, slot, { made: 1 }, first)), {
    status: 409,
    code: 'idempotency_key_in_use',
    raised: true,
  });
  const release = (claimId: string, of: Slot = slot) =>
    transition(sql.api, 'idempotency_release', { ...slotArguments(of), claimId });
  test.same(await release(first), { released: false }, 'not the claim of another');
  test.same(await release(second, { ...slot, organizationId: await createOrganization(sql) }), { released: false });
  test.same(await finish(sql.api, slot, { made: 2 }, second), { stored: true });
  test.match(await refusal(finish(sql.api, slot, { made: 3 }, second)), { code: 'idempotency_key_in_use' });
  test.same(await release(second), { released: false }, 'what has a response stays');
  test.same(await begin(sql.api, slot), { replay: { statusCode: 201, body: { made: 2 } } });

  const failed = { ...slot, key: 'failed' };
  test.same(await release(await claim(failed), failed), { released: true });
  await claim(failed, 'better body');
});

scenario('a claim is renewed while it is of its call, and by nobody else', async (test) => {
  const slot = { organizationId: await createOrganization(sql) };
  const renew = (claimId: string, of: Slot = slot) =>
    transition(sql.api, 'idempotency_renew', { ...slotArguments(of), claimId, claimSeconds: 3_000 });
  const leftSeconds = async () => {
    const { rows } = await sql.owner.query<{ left: number }>(
      `select extract(epoch from claimed_until - clock_timestamp())::integer as left
       from app.idempotency_keys where organization_id = $1`,
      [slot.organizationId],
    );
    return rows[0]?.left ?? 0;
  };
  const first = await claim(slot);
  test.same(await renew(randomUUID()), { renewed: false });
  test.same(await renew(first, { ...slot, organizationId: await createOrganization(sql) }), { renewed: false });
  test.ok((await leftSeconds()) <= 300);
  test.same(await renew(first), { renewed: true });
  test.ok((await leftSeconds()) > 2_000);
  await sql.owner.query(
    'update app.idempotency_keys set claimed_until = clock_timestamp() where organization_id = $1',
    [slot.organizationId],
  );
  const second = await claim(slot);
  test.same(await renew(first), { renewed: false }, 'taken over');
  await finish(sql.api, slot, { made: 1 }, second);
  test.same(await renew(second), { renewed: false }, 'finished');
  test.match(await begin(sql.api, slot), { replay: { body: { made: 1 } } });
});

scenario('a claim that is taken over late keeps its response for 24 hours from then', async (test) => {
  const slot = { organizationId: await createOrganization(sql) };
  await claim(slot);
  await sql.owner.query(
    `update app.idempotency_keys set claimed_until = now(), created_at = now() - interval '23 hours 59 minutes'
     where organization_id = $1`,
    [slot.organizationId],
  );
  await finish(sql.api, slot, { made: 1 }, await claim(slot));
  const { rows } = await sql.owner.query(
    `select created_at > now() - interval '1 minute' as young from app.idempotency_keys where organization_id = $1`,
    [slot.organizationId],
  );
  test.same(rows, [{ young: true }]);
});

scenario('of two claims at once one gets the key', async (test) => {
  const slot = { organizationId: await createOrganization(sql) };
  const results = await Promise.all(Array.from({ length: 20 }, () => claimAs(randomUUID(), slot)));
  test.equal(results.filter((response) => 'fresh' in response).length, 1);
  test.equal(results.filter((response) => 'inUse' in response).length, 19);
});

scenario('a key is kept for 24 hours, whether it was cleaned up or not', async (test) => {
  const old = { organizationId: await createOrganization(sql) };
  const young = { organizationId: await createOrganization(sql) };
  for (const slot of [old, young]) {
    await begin(sql.api, slot);
    await finish(sql.api, slot);
  }
  const age = (organizationId: string, interval: string) =>
    sql.owner.query(`update app.idempotency_keys set created_at = now() - $2::interval where organization_id = $1`, [
      organizationId,
      interval,
    ]);
  await age(old.organizationId, '24 hours 1 second');
  await age(young.organizationId, '23 hours 59 minutes');
  test.same(await begin(sql.api, old, 'other body'), { fresh: true });
  test.match(await begin(sql.api, young), { replay: { statusCode: 201 } });
  await age(old.organizationId, '25 hours');
  test.same(await clean(100, 100), { removed: 1, after: null });
  test.same(await clean(100, 100), { removed: 0, after: null });
  test.match(await begin(sql.api, young), { replay: { statusCode: 201 } });
});

scenario('the clean-up takes at most what it was asked for, and waits for nobody', async (test) => {
  const slots = Array.from({ length: 5 }, () => ({ organizationId: randomUUID() }));
  for (const slot of slots) await begin(sql.api, slot);
  await sql.owner.query(
    `update app.idempotency_keys set created_at = now() - interval '2 days' where organization_id = any ($1)`,
    [slots.map((slot) => slot.organizationId)],
  );
  const holder = await openSession(test, sql, 'owner');
  await holder.begin();
  await holder.query('select from app.idempotency_keys where organization_id = $1 for update', [
    slots[0]?.organizationId,
  ]);
  const ids = slots.map((slot) => slot.organizationId).toSorted();
  const held = ids.indexOf(slots[0]?.organizationId ?? randomUUID());
  test.same(await clean(3, 1), { removed: held < 3 ? 2 : 3, after: ids[2] });
  test.same(await clean(3, 1, ids[2]), { removed: held < 3 ? 2 : 1, after: null });
  await holder.rollback();
  test.same(await clean(3, 1), { removed: 1, after: null });
});

scenario('an organization with many old keys leaves room for another one', async (test) => {
  const [many, one] = [{ organizationId: randomUUID() }, { organizationId: randomUUID() }];
  for (let key = 0; key < 5; key += 1) await begin(sql.api, { ...many, key: `key ${key}` });
  await begin(sql.api, one);
  await sql.owner.query(
    `update app.idempotency_keys set created_at = now() - case when organization_id = $1
         then interval '3 days' - right(key, 1)::int * interval '1 minute' else interval '2 days' end
     where organization_id in ($1, $2)`,
    [many.organizationId, one.organizationId],
  );
  test.same(await clean(10, 2), { removed: 3, after: null });
  const { rows } = await sql.owner.query(
    'select key from app.idempotency_keys where organization_id = any ($1) order by key',
    [[many.organizationId, one.organizationId]],
  );
  test.same(
    rows.map(({ key }) => key),
    ['key 2', 'key 3', 'key 4'],
    'the oldest have gone',
  );
  test.same(await clean(10, 10), { removed: 3, after: null });
});
