import t from 'tap';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { createIntegration } from '../../support/integration_fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql);
for (const provider of ['google-analytics', 'mcp', 'upstash-redis'])
  await createIntegration(sql, org, { provider, key: provider });

async function refusal(key: string, settings: unknown) {
  const path = `/organizations/${org.organizationId}/integrations/${key}/settings`;
  const {
    status,
    body: { error },
  } = await app.owner.put(path, { settings });
  return [status, error.code, error.issues?.map((issue) => `${issue.path}: ${issue.message}`)] as const;
}

t.test('settings are compared with those of their kind, and every field that is wrong is named', async (test) => {
  const keyScope = { kind: 'exact', prefixes: ['shop:'] };
  const redis = { kind: 'upstash_redis', restUrl: 'https://eu1-a-1.upstash.io', keyScope };
  test.same(await refusal('upstash-redis', redis), [
    400,
    'validation_failed',
    ['settings.keyScope.kind: must be prefixes'],
  ]);
  test.same(await refusal('upstash-redis', { kind: 'bogus' }), [
    400,
    'validation_failed',
    [
      'settings.kind: must be one of github, google_analytics, lemon_squeezy, mcp, mongodb, stripe, upstash_redis, x_ads',
    ],
  ]);
  test.same(await refusal('upstash-redis', {}), [400, 'validation_failed', ['settings.kind: is required']]);
});

t.test('those of another provider are refused field by field', async (test) => {
  const [status, code, issues] = await refusal('google-analytics', { kind: 'lemon_squeezy', storeIds: ['1'] });
  test.same([status, code], [400, 'settings_invalid']);
  test.ok(issues?.includes('settings.kind: must be google_analytics'));
  test.ok(issues?.includes('settings.storeIds: is not a known field'));
});

t.test('an address that may not be called is named, and what it has to be is said', async (test) => {
  for (const serverUrl of ['http://shop.example/mcp', 'https://shop.example:6379/mcp']) {
    const [status, , issues] = await refusal('mcp', { kind: 'mcp', serverUrl });
    test.equal(status, 400);
    test.match(issues?.[0], /^settings\.serverUrl: .*https:\/\//);
  }
});
