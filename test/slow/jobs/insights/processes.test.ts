// Two job processes that collect what many organizations have connected, and are killed: each fact is there once, and none is lost.
import t from 'tap';
import { encryptionKeys } from '../../../../engine/secrets/index.ts';
import { openStorage } from '../../../../engine/storage/index.ts';
import { KEYS } from '../../../engine/integrations/support.ts';
import { openAccount, transaction } from '../../../engine/providers/stripe_account.ts';
import { type JobsProcess, jobsConfig, spawnJobs } from '../../../jobs/support.ts';
import { collectedSources, connectProvider, factsOf } from '../../../support/collected_facts.ts';
import { createTestOrganization } from '../../../support/fixtures.ts';
import { rounds } from '../../../support/full.ts';
import type { Place } from '../../../support/insight_fixtures.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const ORGANIZATIONS = rounds({ short: 4, full: 20 });
const CONNECTORS = 5;
const DAY_S = 86_400;

const sql = await openSql(t);
const { account, server } = await openAccount(t);
const config = await jobsConfig(t, sql.url);
const storage = openStorage(config.storageUrl, {});
const keys = encryptionKeys.parse(KEYS);
const settings = {
  DATA_DIR: config.dataDir,
  STORAGE_URL: config.storageUrl,
  ENCRYPTION_KEYS: KEYS,
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify({ 'https://api.stripe.com': server.origin }),
  INSIGHT_UNITS: '4',
};

const now = Math.floor(Date.now() / 1_000);
account.transactions = Array.from({ length: 40 }, (_, n) => transaction(`txn_${n}`, now - 3_600 - n * 5 * DAY_S));

/** How many units are under way, of all, of one organization, and of one connector. */
async function underWay() {
  const { rows } = await sql.owner.query(`
    select count(*)::int as of_organization, count(distinct integration_id)::int as connectors
    from app.insight_units where state = 'leased' group by organization_id`);
  const counts = rows.map(({ of_organization }) => of_organization);
  const isSingle = rows.every(({ of_organization, connectors }) => of_organization === connectors);
  return { all: counts.reduce((sum, count) => sum + count, 0), most: Math.max(0, ...counts), isSingle };
}

/** Rounds that nobody has done to their end, and connectors whose sources nobody has looked for. */
const left = async () => {
  const { rows } = await sql.owner.query(`
    select (select count(*) from app.insight_cursors where completed_at is null)::int
      + (select count(*) from app.insight_connectors where discovered_at is null)::int as count`);
  return rows[0].count;
};

/** What a dead process has leased is free, and what has failed is due. */
const passTime = async () => {
  await sql.owner.query(`
    update app.insight_cursors set due_at = now() where failure_count > 0;
    update app.insight_connectors set lease_expires_at = case when unit_id is not null then now() end, due_at = now(),
      discovery_due_at = case when failure_count > 0 then now() else discovery_due_at end`);
};

t.test(
  'no connector twice, two of an organization, four of a process; and whenever they die, each fact is there once',
  async (test) => {
    const places: Place[] = [];
    for (let org = 0; org < ORGANIZATIONS; org += 1) {
      const organization = await createTestOrganization(sql);
      for (let number = 0; number < CONNECTORS; number += 1) {
        const name = `${org}x${number}`;
        const credential = { kind: 'api_key', apiKey: `rk_live_key${name}` };
        places.push(await connectProvider(sql, organization, { provider: 'stripe', keys, credential, subject: name }));
      }
    }
    /** Connectors that were asked for facts. */
    const begun = () => asking.size;
    /** Requests under way, by key. */
    const asking = new Map<string, number>();
    let twice = 0;
    account.send = async (page, { headers }) => {
      const key = String(headers.authorization);
      asking.set(key, (asking.get(key) ?? 0) + 1);
      if ((asking.get(key) ?? 0) > 1) twice += 1;
      await new Promise((resolve) => setTimeout(resolve, 30));
      asking.set(key, (asking.get(key) ?? 1) - 1);
      return page;
    };
    const seen = { all: 0, most: 0 };
    const start = () => spawnJobs(test, sql.url, settings);
    let processes: JobsProcess[] = await Promise.all([start(), start()]);
    await until(
      'some of it is collected',
      async () => {
        const { all, most, isSingle } = await underWay();
        test.ok(all <= 8 && most <= 2 && isSingle, `${all} units, ${most} of one organization`);
        seen.all = Math.max(seen.all, all);
        seen.most = Math.max(seen.most, most);
        return begun() === places.length && (await left()) <= places.length;
      },
      240_000,
    );
    test.equal(twice, 0, 'no connector was asked twice at once');
    test.ok(seen.all > 4, `${seen.all} at once: both processes collect`);
    test.equal(seen.most, 2);

    for (let round = 0; round < rounds({ short: 2, full: 5 }); round += 1) {
      const [victim, ...others] = processes;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500));
      await victim?.kill('SIGKILL');
      await passTime();
      processes = [...others, await start()];
    }
    await until(
      'all is collected',
      async () => {
        if ((await left()) === 0) return true;
        await sql.owner.query(
          'update app.insight_cursors set due_at = now() where failure_count > 0 and due_at > now()',
        );
        await sql.owner.query(
          'update app.insight_connectors set due_at = now(), discovery_due_at = least(discovery_due_at, now()) where unit_id is null and (due_at is null or due_at > now())',
        );
        return false;
      },
      240_000,
    );
    for (const one of processes) await one.kill('SIGTERM');

    const ids = account.transactions.map(({ id }) => id).sort();
    for (const place of places) {
      const [balance] = await collectedSources(sql, place);
      if (!balance) throw new Error('there is no source');
      test.same([...(await factsOf(sql, storage, place, balance)).keys()].sort(), ids);
    }
    const { rows: torn } = await sql.owner.query(`
    select organization_id from app.insight_heads h
    where revision <> (select count(*) from app.insight_publications p where p.organization_id = h.organization_id)`);
    test.same(torn, [], 'no revision is left out');
    const { rows: unpublished } = await sql.owner.query(`
    select id from app.insight_segments where published_revision is null and retired_at is null and not staged`);
    test.same(unpublished, []);
  },
);
