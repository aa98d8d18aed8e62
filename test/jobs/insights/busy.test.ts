// Connections that wait for others of their organization.
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { encryptionKeys } from '../../../engine/secrets/index.ts';
import { KEYS } from '../../engine/integrations/support.ts';
import { openAccount } from '../../engine/providers/stripe_account.ts';
import { connectProvider } from '../../support/collected_facts.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { openSql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { openJobs } from '../support.ts';

const sql = await openSql(t);
const { account: stripe, server } = await openAccount(t);

t.test(
  'while an organization has as many units as it may, its other connections are asked for now and then',
  async (test) => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    stripe.send = async (page) => {
      await held;
      return page;
    };
    const org = await createTestOrganization(sql);
    for (let n = 0; n < 4; n += 1) {
      const credential = { kind: 'api_key', apiKey: `rk_live_abc${n}` };
      await connectProvider(sql, org, {
        provider: 'stripe',
        keys: encryptionKeys.parse(KEYS),
        credential,
        subject: `acct_${n}`,
      });
    }
    await openJobs(t, sql.url, {
      ENCRYPTION_KEYS: KEYS,
      ALLOW_PRIVATE_ADDRESSES: '1',
      PROVIDER_ORIGINS: JSON.stringify({ 'https://api.stripe.com': server.origin }),
      INSIGHT_UNITS: '4',
    });
    await until('two are under way', async () => {
      const { rows } = await sql.owner.query(
        `select count(*)::int as count from app.insight_units where state = 'leased'`,
      );
      return rows[0].count === 2;
    });
    const transactions = async () => {
      const { rows } = await sql.owner.query(
        'select xact_commit::int as count from pg_stat_database where datname = current_database()',
      );
      return rows[0].count;
    };
    // Statistics come late.
    await pause(1_500);
    const before = await transactions();
    await pause(2_000);
    // Asked for without a pause they would take as many as the database can serve: hundreds a second.
    test.ok((await transactions()) - before < 400, `${(await transactions()) - before} transactions`);
    release();
  },
);
