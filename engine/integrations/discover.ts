import { Problem } from '../db/problem.ts';
import { issueText } from '../issue_text.ts';
import { DEADLINE_MS, type Discovery, type SettingIssue } from '../providers/index.ts';
import { toIssues } from '../schema_issues.ts';
import { parseCredential } from './connect.ts';
import { useConnection } from './connection.ts';
import { credentialTexts } from './credential_texts.ts';
import { type Integrations, organizationClient } from './integrations.ts';
import { type Given, integrationProblem, needsReauthorization, notReady, withProblems } from './problems.ts';
import { type ReadIntegration, type recordResult, requireSettings, targetOf } from './record.ts';
import { recordDiscovery, shownDiscovery } from './server_tools.ts';
import { providerContext } from './stored.ts';

export type DiscoverOptions = Readonly<{
  signal?: AbortSignal | undefined;
  /** All requests to the provider together. */
  deadlineMs?: number;
  /** In place of the stored ones; not kept. */
  settings?: unknown;
  /** In place of the stored one; not kept. */
  credential?: unknown;
}>;

function requireConnected({ record }: ReadIntegration): void {
  if (record.readiness === 'not_connected') throw notReady('connection', 'not_connected', 'connect it first');
  if (record.readiness === 'needs_reauthorization') throw needsReauthorization();
}

/** What was found, as the provider says it, and the secret texts that no response may repeat. */
type Found = Readonly<{ discovery: Discovery; secrets: readonly string[] }>;

const shown = ({ discovery, secrets }: Found): Discovery => shownDiscovery(discovery, secrets);

async function find(
  integrations: Integrations,
  integration: ReadIntegration,
  options: DiscoverOptions,
): Promise<Found> {
  const { organizationId, provider, record } = integration;
  const { signal, deadlineMs = DEADLINE_MS, settings = record.settings, credential } = options;
  if (credential !== undefined) {
    const given = parseCredential(provider, credential);
    return withProblems(async () => {
      const client = await organizationClient(integrations, organizationId, provider.key);
      const context = providerContext(integrations, provider, client, { account: record.id, signal, deadlineMs });
      const discovery = await provider.discover(context, { credential: given, settings });
      return { discovery, secrets: credentialTexts(given) };
    }, 'credential');
  }
  requireConnected(integration);
  const given: Given = options.settings === undefined ? 'nothing' : 'settings';
  return withProblems(
    () =>
      useConnection(
        integrations,
        targetOf(integration),
        async ({ context, access, secrets }) => {
          return { discovery: await provider.discover(context, { ...access, settings }), secrets };
        },
        { signal, evenDisabled: true, withinMs: deadlineMs },
      ),
    given,
  );
}

/**
 * What a connection, or a credential that somebody just gave, reaches. Within 25 s, and nothing is kept.
 * @throws Problem 400, 403, 404, 409, 502, 503; the signal's reason
 */
export async function lookUp(
  integrations: Integrations,
  integration: ReadIntegration,
  options: DiscoverOptions = {},
): Promise<Discovery> {
  return shown(await find(integrations, integration, options));
}

/** What is recorded of one that failed: a code of the contract and our own words. */
function recorded(error: unknown) {
  if (!(error instanceof Problem)) return undefined;
  const { code, message } = error;
  return { status: 'failed', error: { code, message: error.issues?.[0]?.message ?? message } } as const;
}

/**
 * Asks the provider what there is, and records how that went, also where it failed. Tools that the provider changed are off.
 * @throws Problem 403, 404, 409 `integration_not_ready` | `integration_conflict`, 502, 503; the signal's reason
 */
export async function discover(
  integrations: Integrations,
  integration: ReadIntegration,
  options: Pick<DiscoverOptions, 'signal' | 'deadlineMs'> = {},
): Promise<Readonly<{ discovery: Discovery; integration: typeof recordResult._output.integration }>> {
  requireConnected(integration);
  requireSettings(integration);
  const { record, provider } = integration;
  const target = targetOf(integration);
  try {
    const found = await lookUp(integrations, integration, options);
    const after = await recordDiscovery(integrations, target, { status: 'ok' }, found.tools ?? provider.tools);
    return { discovery: found, integration: after };
  } catch (error) {
    const problem = integrationProblem(error);
    const failure = recorded(problem);
    // Of one that was replaced meanwhile there is nothing to record, and who has left waits for nothing.
    if (failure && failure.error.code !== 'integration_conflict') {
      await recordDiscovery(integrations, target, failure, null).catch((cause: unknown) => {
        integrations.log.warn({ err: cause, integrationId: record.id }, 'a discovery was not recorded');
      });
    }
    throw problem;
  }
}

/**
 * What of settings the connection does not bear out: `settings` are read by the provider's schema, and compared with what the
 * provider says there is now. Where it is not connected yet nothing can be compared, and the schema alone decides.
 * @throws Problem 400 `settings_invalid`, 403, 404, 409, 502, 503; the signal's reason
 */
export async function checkSettings(
  integrations: Integrations,
  integration: ReadIntegration,
  settings: unknown,
  options: Pick<DiscoverOptions, 'signal' | 'deadlineMs'> = {},
): Promise<Readonly<{ settings: unknown; discovery: Discovery | null }>> {
  const { provider, record } = integration;
  if (provider.settings === null) {
    const message = 'this provider has no settings';
    throw new Problem(400, 'settings_invalid', 'The settings are not valid.', [
      { path: 'settings', code: 'invalid_value', message },
    ]);
  }
  const parsed = provider.settings.schema.safeParse(settings, { error: issueText });
  if (!parsed.success) {
    throw new Problem(400, 'settings_invalid', 'The settings are not valid.', toIssues(parsed.error, 'settings'));
  }
  await checkAddress(integrations, integration, parsed.data);
  const canAsk = record.readiness !== 'not_connected' && record.readiness !== 'needs_reauthorization';
  // Settings that say what is connected are for another connection than the stored one.
  if (!canAsk || provider.settings.beforeConnection === true) return { settings: parsed.data, discovery: null };
  const found = await find(integrations, integration, { ...options, settings: parsed.data });
  // With the names as they are: one that is like a password may be chosen, though none is shown.
  refuse(provider.checkSettings(parsed.data, found.discovery));
  return { settings: parsed.data, discovery: shown(found) };
}

function refuse(found: readonly SettingIssue[]): void {
  if (found.length === 0) return;
  const issues = found.map(({ path, message }) => ({
    path: ['settings', ...path.map(String)].join('.'),
    code: 'unknown_choice',
    message,
  }));
  throw new Problem(400, 'settings_invalid', 'The connection does not bear the settings out.', issues);
}

/** The address of settings: https, and of no domain that the organization blocks. Where its name leads is checked at each call. */
async function checkAddress(
  integrations: Integrations,
  { organizationId, provider }: ReadIntegration,
  settings: unknown,
): Promise<void> {
  const client = await organizationClient(integrations, organizationId, provider.key);
  const field = provider.settings?.address;
  if (field === undefined) return;
  const { [field]: address } = settings as Readonly<Record<string, string>>;
  await withProblems(async () => client.secureUrl(provider.key, address ?? ''), 'settings', `settings.${field}`);
}
