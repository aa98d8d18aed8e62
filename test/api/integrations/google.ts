// Google on loopback: its authorization server, its revocation, and the properties of Analytics.
import { randomUUID } from 'node:crypto';
import type { Integration } from '../../../api/integrations/schema.ts';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { startTestApp, type TestApp, type TestAppOptions } from '../../support/app.ts';
import { CONSOLE, ended, openFlows } from '../../support/authorization_flows.ts';
import { openAuthorizationServer } from '../../support/authorization_server.ts';
import type { TearDown } from '../../support/database.ts';
import type { TestOrganization } from '../../support/fixtures.ts';

export const SCOPE = 'https://www.googleapis.com/auth';
export const KEY = 'office';
export const GMAIL = { accessMode: 'read_only', enabledTools: ['gmail', 'calendar'] };

export const result = (name: string, key = KEY) => ended(name, key);

/** The authorizations of one integration of Google Workspace in each organization, and of Analytics. */
export function openGoogleFlows(app: TestApp) {
  const flows = openFlows(app, 'google-workspace');
  return {
    flows,
    analytics: openFlows(app, 'google-analytics'),
    create: (org: TestOrganization) => flows.create(org, KEY),
    read: (org: TestOrganization): Promise<Integration> => flows.read(org, KEY),
    start: (org: TestOrganization, body: object = GMAIL) => flows.start(org, body, KEY),
    authorize: (org: TestOrganization, body: object = GMAIL) => flows.authorize(org, body, KEY),
    verify: (org: TestOrganization) => flows.verify(org, KEY),
  };
}

export async function openGoogle(t: TearDown) {
  const server = await openAuthorizationServer(t, {
    issuer: 'https://accounts.google.com',
    routes: {
      authorization: '/o/oauth2/v2/auth',
      token: '/token',
      revocation: '/revoke',
      userinfo: '/v1/userinfo',
    },
    scopes: [
      'email',
      `${SCOPE}/gmail.readonly`,
      `${SCOPE}/calendar.readonly`,
      `${SCOPE}/drive.readonly`,
      `${SCOPE}/analytics.readonly`,
    ],
    client: { id: 'google-client', secret: 'google-secret' },
  });
  const origins = {
    'https://accounts.google.com': server.origin,
    'https://oauth2.googleapis.com': server.origin,
    'https://openidconnect.googleapis.com': server.origin,
    'https://analyticsadmin.googleapis.com': server.origin,
  };
  const { integrations } = integrationConfig({ origins });
  /** By the person: all that they granted to the project. */
  const grants = new Map<string, Set<string>>();
  /** What each person has in Analytics. */
  const properties = ['11'];

  return {
    server,
    origins,
    properties,
    /** An app whose browsers end at the console, or at a page of the service itself. */
    startApp: ({ config, ...options }: TestAppOptions = {}, frontendUrl: string | null = CONSOLE) =>
      startTestApp(t, {
        ...options,
        config: {
          ...config,
          integrations: { ...integrations, frontendUrl: frontendUrl ?? undefined },
          allowPrivateAddresses: true,
        },
      }),
    /** Lets the authorizations of these apps end at them. */
    open(...apps: readonly Pick<TestApp, 'url'>[]) {
      const provider = server.open(
        apps.flatMap(({ url }) => ['workspace', 'analytics'].map((name) => `${url}/oauth/google-${name}/callback`)),
      );
      /** Ends all that a person granted to this project, whatever it was granted for. */
      async function revoke(account: string): Promise<void> {
        for (const grantId of grants.get(account) ?? []) {
          await provider.RefreshToken.revokeByGrantId(grantId);
          await provider.AccessToken.revokeByGrantId(grantId);
        }
        grants.delete(account);
      }
      server.before.push(async (req) => {
        const { authorization = '' } = req.headers;
        if (!authorization.startsWith('Bearer ')) return false;
        const token = await provider.AccessToken.find(authorization.slice('Bearer '.length));
        if (token?.accountId === undefined) return false;
        const granted = grants.get(token.accountId) ?? new Set<string>();
        grants.set(token.accountId, granted.add(token.grantId ?? ''));
        return false;
      });
      server.before.push(async (req, res) => {
        // Google's revocation takes any token without a client, and ends all that the person granted.
        if (req.method !== 'POST' || req.url !== '/revoke') return false;
        let body = '';
        for await (const chunk of req) body += chunk;
        const value = new URLSearchParams(body).get('token') ?? '';
        const token = (await provider.RefreshToken.find(value)) ?? (await provider.AccessToken.find(value));
        if (!token) {
          res.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_token"}');
          return true;
        }
        await revoke(token.accountId ?? '');
        res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
        return true;
      });
      server.before.push(async (req, res) => {
        // The properties of Analytics, for whoever has a token.
        const { pathname } = new URL(req.url ?? '', server.origin);
        if (!pathname.startsWith('/v1beta/')) return false;
        const token = (req.headers.authorization ?? '').replace(/^Bearer /, '');
        const isKnown = (await provider.AccessToken.find(token)) !== undefined;
        const found = pathname.endsWith('/accountSummaries')
          ? {
              accountSummaries: [
                { displayName: 'Acme', propertySummaries: properties.map((id) => ({ property: `properties/${id}` })) },
              ],
            }
          : { timeZone: 'Europe/Stockholm', currencyCode: 'SEK' };
        res
          .writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' })
          .end(JSON.stringify(isKnown ? found : {}));
        return true;
      });
      return { revoke };
    },
    /** A person whom it has not seen yet, and who grants everything. */
    forgetPerson(): void {
      server.person.account = `p-${randomUUID()}`;
      server.person.denies = false;
      server.person.grants = () => true;
      server.refresh.isOn = true;
    },
  };
}
