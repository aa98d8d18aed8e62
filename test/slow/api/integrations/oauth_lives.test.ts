// The life of a connection over HTTP, at each provider that is authorized. `api/integrations/providers` has those of credentials.
import t from 'tap';
import type { Integration } from '../../../../api/integrations/schema.ts';
import { startWithAuthorizations } from '../../../api/integrations/authorizations.ts';
import { openCalls } from '../../../api/integrations/calls.ts';
import { agentPath, expectSuccess, type Fields, refusalOf, sqlOf } from '../../../support/api_fixtures.ts';
import { atIntegrations, ended, openFlows } from '../../../support/authorization_flows.ts';
import { authorizationEpoch, createTestOrganization } from '../../../support/fixtures.ts';
import { brokenInvariants } from '../../../support/invariants.ts';

const { app, cases } = await startWithAuthorizations(t);
const sql = sqlOf(app);

const keysOf = ({ tools }: Integration, isMeant: (tool: Integration['tools'][number]) => boolean) =>
  tools.filter(isMeant).map(({ key }) => key);
const enabledOf = (integration: Integration) => keysOf(integration, ({ enabled }) => enabled);

for (const [provider, { kind, address, choice, body, asked = /./, items, ...at }] of Object.entries(cases)) {
  t.test(`${provider} is authorized, configured, asked, disabled, disconnected and authorized again`, async (test) => {
    at.signIn();
    const org = await createTestOrganization(sql);
    const flows = openFlows(app, provider);
    const one = openCalls(app.owner, org, provider);
    const start = atIntegrations(org, `/${provider}/oauth/${provider}/start`);
    const authorize = async (more: object = {}) =>
      test.same(await flows.authorize(org, { ...body, ...more }), ended('connected', provider));
    /** X lets nobody ask for accounts more than five times in a quarter of an hour. */
    const asking = async <T>(ask: () => Promise<T>) => {
      await app.database.owner.query('delete from app.rate_limit_buckets');
      return ask();
    };
    const found = async () => {
      const { items, ...rest } = expectSuccess(await asking(one.discover));
      test.match(rest, { discovery: { status: 'ok', error: null }, truncated: false });
      return Object.fromEntries(items.map((item) => [item['id'], item]));
    };
    const isAvailable = async () => {
      const epoch = await authorizationEpoch(sql, org.organizationId);
      const listed = await app.service.get<Fields[]>(agentPath(org, `/integrations?authorizationEpoch=${epoch}`));
      return expectSuccess(listed).map(({ available }) => available);
    };

    // Created.
    const made = await flows.create(org);
    test.match(made, { readiness: 'not_connected', connection: null, settings: null, status: 'enabled' });
    test.equal(refusalOf(await one.discover()), '409 integration_not_ready not_connected');
    test.match(refusalOf(await one.connect({ kind: 'api_key', apiKey: 'x' })), /^400 credential_rejected/);
    if (address) {
      test.equal(refusalOf(await app.owner.post(start, {})), '409 integration_not_ready needs_configuration');
      expectSuccess(await one.settings(address));
    }

    // Connected.
    await authorize();
    const connected = expectSuccess(await one.get());
    test.match(connected, { readiness: choice ? 'needs_configuration' : 'ready', connection: { kind } });
    const { revision = 0 } = connected.connection ?? {};
    test.equal(revision, address ? 2 : 1);

    // Configured.
    if (choice) {
      const [[field, list] = []] = Object.entries(choice).filter(([, value]) => Array.isArray(value));
      const wrong = { ...choice, [field ?? '']: [...(list as string[]), '99'] };
      test.equal(refusalOf(await asking(() => one.settings(wrong))), '400 settings_invalid unknown_choice');
      test.equal(expectSuccess(await one.get()).settings, null);
      expectSuccess(await asking(() => one.settings(choice)));
    }
    test.match(refusalOf(await one.settings({ kind: 'stripe' })), /^400 settings_invalid/, 'of another provider');
    const settings = choice ?? address ?? null;
    test.match(expectSuccess(await one.get()), { readiness: 'ready', settings, connection: { revision } });

    // Asked, and asked again when there is more.
    test.match(await found(), items);
    const more = at.grow();
    if (more) await authorize(more);
    test.match(await found(), at.grown);
    test.match(expectSuccess(await one.get()), { discovery: { status: 'ok' }, connection: { revision } });

    // Tools by mode, and by list.
    const all = expectSuccess(await one.get()).tools.filter(({ key }) => asked.test(key));
    const [reads, writes] = ['read', 'write'].map((effect) => all.filter((tool) => tool.effect === effect));
    const full = expectSuccess(await one.tools({ accessMode: 'full' }));
    test.equal(full.accessMode, 'full');
    test.same(
      enabledOf(full),
      keysOf(full, ({ available }) => available),
      'all that its scopes allow',
    );
    const read = expectSuccess(await one.tools({ accessMode: 'read_only' }));
    test.same(
      enabledOf(read),
      keysOf(read, ({ available, effect }) => available && effect === 'read'),
    );
    const writing = writes?.[0]?.key;
    if (writing !== undefined) {
      test.match(refusalOf(await one.tools({ accessMode: 'read_only', tools: [writing] })), /^400 validation_failed/);
    }
    test.match(refusalOf(await one.tools({ tools: ['nothing.like.it'] })), /^400 validation_failed/);
    const chosen = reads?.[0]?.key ?? writing ?? '';
    const byList = expectSuccess(await one.tools({ accessMode: 'full', tools: [chosen] }));
    test.same(enabledOf(byList), [chosen]);
    test.same(await isAvailable(), [true]);

    // Disabled, and enabled.
    test.match(expectSuccess(await one.status('disabled')), { status: 'disabled', readiness: 'ready' });
    test.same(await isAvailable(), [false]);
    test.match(await found(), at.grown, 'its owner may look at it');
    test.match(expectSuccess(await one.status('enabled')), { status: 'enabled' });
    test.same(await isAvailable(), [true]);

    // Disconnected.
    const gone = expectSuccess(await one.disconnect());
    test.match(gone, { readiness: 'not_connected', connection: null, settings });
    test.same(expectSuccess(await one.disconnect()), gone, 'a repeat');
    test.equal(refusalOf(await one.discover()), '409 integration_not_ready not_connected');
    test.same(await isAvailable(), [false]);
    const { rows } = await sql.owner.query('select from app.integration_secrets where integration_id = $1', [made.id]);
    test.equal(rows.length, 0, 'its secrets are gone at once');

    // Authorized again.
    await authorize({ ...more, ...(reads?.[0] ? {} : { accessMode: 'full' }) });
    const back = expectSuccess(await one.get());
    test.match(back, { readiness: 'ready', settings, connection: { kind } });
    test.ok((back.connection?.revision ?? 0) > revision);
    test.same(enabledOf(back), [chosen], 'tools outlive it too');
    test.match(await found(), at.grown);
    test.same(await isAvailable(), [true]);
    expectSuccess(await one.delete());
    test.equal(refusalOf(await one.get()), '404 integration_not_found');
    test.same(await brokenInvariants(sql), {});
  });
}
