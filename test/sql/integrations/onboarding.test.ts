import t from 'tap';
import { updateOrganization } from '../../support/fixtures.ts';
import {
  account,
  connect,
  createIntegration,
  integrationCreate,
  integrationOf,
  READ,
} from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import {
  complete,
  finish,
  onboardingIn,
  placeOf,
  publishCatalog,
  putDisposition,
  read,
} from '../../support/onboarding_fixtures.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
await publishCatalog(sql);
const scenario = scenarios(t, sql);

scenario('an integration may be made while an organization is onboarded, which raises the generation', async (test) => {
  for (const status of ['collecting', 'researching', 'research_failed', 'review', 'completed']) {
    const before = await onboardingIn(sql, status);
    const org = placeOf(before);
    await createIntegration(sql, org, { key: 'shop' });
    const after = await read(sql, org);
    test.equal(after.generation, before.generation + (status === 'completed' ? 0 : 1), status);
    test.equal(after.status, status);
    test.equal((await refusal(integrationCreate(sql.api, org, { key: 'shop' }))).reason, 'in_use');
    test.equal((await read(sql, org)).generation, after.generation, 'a refusal changes nothing');
    if (status === 'researching') test.ok(await finish(sql, org, before.generation), 'the research goes on');
  }
});

const codes = ({ review }: Awaited<ReturnType<typeof read>>) => review?.warnings.map(({ code }) => code);

scenario('what is to be connected now is a warning until it has a usable connection', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const org = { ...placeOf(review), profileId: '', profileKey: '' };
  let onboarding = await putDisposition(sql, review, 'stripe', 'connect_now');
  onboarding = await putDisposition(sql, onboarding, 'crm', 'connect_now');
  test.same(codes(onboarding), ['integration_not_connected', 'integration_not_connected']);
  await createIntegration(sql, org, { key: 'sales', provider: 'stripe' });
  const crm = await createIntegration(sql, org, { key: 'crm', provider: 'mcp', settingsRequired: true });
  await connect(sql.api, org, 'sales', account('acme'));
  await connect(sql.api, org, 'crm', account('acme'));
  test.same(
    codes(await read(sql, org)),
    ['integration_not_connected'],
    'by the provider; one without its settings is not usable',
  );
  const { organizationId } = org;
  await transition(sql.api, 'integration_settings_put', {
    organizationId,
    integrationRef: crm.id,
    settings: { serverUrl: 'https://crm.example' },
    connectionRevision: 1,
    disconnect: false,
    forgetTools: false,
  });
  test.same(codes(await read(sql, org)), []);
  await transition(sql.api, 'integration_status_set', { organizationId, integrationRef: 'crm', status: 'disabled' });
  const shown = await read(sql, org);
  test.same(codes(shown), ['integration_not_connected']);
  test.match(await refusal(complete(sql.api, org, shown)), { status: 409, reason: 'has_warnings' });
  test.match(await refusal(complete(sql.api, org, onboarding, { allowWarnings: true })), {
    status: 409,
    reason: 'stale',
  });
  test.match(await complete(sql.api, org, shown, { allowWarnings: true }), { status: 'completed' });
});

const providers = ['github', 'mongodb', 'stripe', 'x-ads'].map((provider) => ({
  key: provider,
  provider,
  name: provider.toUpperCase(),
  settingsRequired: provider === 'mongodb',
  tools: [READ],
}));

scenario(
  'the completion makes the missing integrations of providers, once, and of those that are allowed',
  async (test) => {
    let onboarding = await onboardingIn(sql, 'review');
    const org = placeOf(onboarding);
    for (const [key, disposition, departments] of [
      ['github', 'connect_later', ['growth']],
      ['mongodb', 'connect_now', []],
      ['stripe', 'connect_later', []],
      ['x-ads', 'not_used', []],
      ['web-shop', 'connect_later', []],
    ] as const) {
      onboarding = await putDisposition(sql, onboarding, key, disposition, [...departments]);
    }
    await createIntegration(sql, org, { key: 'sales', provider: 'stripe' });
    const shown = await read(sql, org);
    await complete(sql.api, org, shown, { allowWarnings: true, providers });
    const list = () =>
      transition(sql.api, 'integrations_list', {
        organizationId: org.organizationId,
        key: null,
        inclusive: true,
        backward: false,
        limit: 200,
      });
    const { integrations } = await list();
    const made = (integrations as unknown[]).map((integration) => integrationOf({ integration }));
    test.match(made, [
      { key: 'github', provider: 'github', name: 'GITHUB', departments: ['growth'], readiness: 'not_connected' },
      { key: 'mongodb', departments: [], settings_required: true, tools: [{ key: READ.key, enabled: false }] },
      { key: 'sales', provider: 'stripe' },
    ]);
    test.equal(made.length, 3);
    await refusal(complete(sql.api, org, shown, { allowWarnings: true, providers }));
    test.same((await list())['integrations'], integrations, 'a repeat');

    const other = await onboardingIn(sql, 'review');
    await updateOrganization(sql.api, placeOf(other), { constraints: { allowedIntegrations: ['github'] } });
    await putDisposition(sql, await read(sql, placeOf(other)), 'stripe', 'connect_later');
    await complete(sql.api, placeOf(other), await read(sql, placeOf(other)), { providers });
    const { rows } = await sql.owner.query('select key from app.integrations where organization_id = $1', [
      other.organization_id,
    ]);
    test.same(rows, [], 'none that is not allowed');

    const blocking = await onboardingIn(sql, 'review');
    await updateOrganization(sql.api, placeOf(blocking), { constraints: { blockedDomains: ['stripe.com'] } });
    await putDisposition(sql, await read(sql, placeOf(blocking)), 'stripe', 'connect_later');
    const hosted = providers.map((provider) => ({ ...provider, hosts: ['api.stripe.com'] }));
    await complete(sql.api, placeOf(blocking), await read(sql, placeOf(blocking)), { providers: hosted });
    const blocked = await sql.owner.query('select key from app.integrations where organization_id = $1', [
      blocking.organization_id,
    ]);
    test.same(blocked.rows, [], 'none whose domain is blocked');
  },
);
