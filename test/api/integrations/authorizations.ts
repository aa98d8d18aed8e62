// The five providers that a person authorizes, as servers on loopback, each with what a person may do there.
import { randomUUID } from 'node:crypto';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { CONSOLE } from '../../support/authorization_flows.ts';
import type { TearDown } from '../../support/database.ts';
import { openGithub } from './github.ts';
import { GMAIL, openGoogle, SCOPE } from './google.ts';
import { openMcpServer } from './mcp_server.ts';
import { openX } from './x.ts';

type Settings = Readonly<Record<string, unknown>>;

/** Less than all that was asked for. */
export type Part = Readonly<{
  what: string;
  /** Undefined: a person cannot grant more, as what is reached is decided elsewhere. */
  grants?: (scope: string) => boolean;
  /** The provider asks for more than it does otherwise, or no longer. */
  asks?: (more: boolean) => void;
  ends: 'connected' | 'denied' | 'failed';
  /** Tools that are offered then, and not available. */
  lacks?: RegExp;
  /** Settings that it does not reach. */
  wrong?: Settings;
}>;

export type Authorized = Readonly<{
  kind: 'oauth1' | 'oauth2';
  /** Of the start. */
  body?: object;
  /** Tools of what is asked for. Default: all. */
  asked?: RegExp;
  /** Signs somebody in whom the provider has not seen. */
  signIn(): void;
  denies(denies: boolean): void;
  grants(grants: (scope: string) => boolean): void;
  /** The person takes the authorization back, at the provider. */
  revoke(): Promise<void> | void;
  /** False: the provider does not say whose a token is, so that each connection has an authorization of its own. */
  tellsAccounts: boolean;
  /** Settings that come before the connection. */
  address?: Settings;
  /** What can be chosen once it is connected. */
  choice?: Settings;
  parts: readonly Part[];
  /** Without one, tokens that end connect nothing. */
  refresh: Readonly<{ switch: { isOn: boolean }; without: 'failed' | 'connected' }> | { impossible: string };
  /** By id, what there is to discover. */
  items: Settings;
  /** There is more, or a new authorization asks for more: its body. */
  grow(): object | undefined;
  grown: Settings;
}>;

/** All of them, and the settings of an API that has them in place of the real ones. */
export async function openAuthorizations(t: TearDown) {
  const [google, github, x, mcp] = [await openGoogle(t), await openGithub(t), await openX(t), await openMcpServer(t)];
  const { integrations } = integrationConfig({ origins: { ...google.origins, ...github.origins, ...x.origins } });
  const config = { integrations: { ...integrations, frontendUrl: CONSOLE }, allowPrivateAddresses: true };
  return { config, google, github, x, mcp };
}
type Authorizations = Awaited<ReturnType<typeof openAuthorizations>>;

/** What each of them does, once authorizations may end at this API. */
export function authorizedCases({ google, github, x, mcp }: Authorizations, app: Pick<TestApp, 'url'>) {
  const [atGoogle, atGithub, atMcp] = [google.open(app), github.open(app.url), mcp.open([])];

  /** Of a server with accounts: who is there, and what they say. */
  const personAt = ({ person }: typeof google.server) => ({
    signIn: () => {
      person.account = `p-${randomUUID()}`;
    },
    denies: (denies: boolean) => {
      person.denies = denies;
    },
    grants: (grants: (scope: string) => boolean) => {
      person.grants = grants;
    },
  });
  const atGoogles = {
    kind: 'oauth2',
    ...personAt(google.server),
    revoke: () => atGoogle.revoke(google.server.person.account),
    tellsAccounts: true,
    refresh: { switch: google.server.refresh, without: 'failed' },
  } as const;

  const cases: Readonly<Record<string, Authorized>> = {
    'google-workspace': {
      ...atGoogles,
      body: GMAIL,
      asked: /\.(gmail|calendar)\./,
      parts: [
        {
          what: 'one service of two',
          grants: (scope) => !scope.includes('gmail'),
          ends: 'connected',
          lacks: /\.gmail\./,
        },
        { what: 'no service', grants: (scope) => !scope.startsWith(SCOPE), ends: 'denied' },
      ],
      items: { gmail: { read: true, write: false }, drive: { read: false } },
      grow: () => ({ enabledTools: ['gmail', 'calendar', 'drive'] }),
      grown: { gmail: { read: true }, drive: { read: true, write: false } },
    },
    'google-analytics': {
      ...atGoogles,
      choice: { kind: 'google_analytics', propertyIds: ['11'] },
      parts: [
        { what: 'all but the address', grants: (scope) => scope !== 'email', ends: 'connected' },
        { what: 'no numbers', grants: (scope) => !scope.startsWith(SCOPE), ends: 'denied' },
      ],
      items: { 11: { account: 'Acme', currency: 'SEK' } },
      grow: () => void google.properties.push('12'),
      grown: { 11: {}, 12: { timeZone: 'Europe/Stockholm' } },
    },
    github: {
      kind: 'oauth2',
      ...personAt(github.server),
      revoke: () => atGithub.revoke(github.server.person.account),
      tellsAccounts: true,
      choice: { kind: 'github', owner: 'Acme', repositories: ['site'] },
      // A GitHub App has permissions in place of scopes: what it is installed for is what it reaches.
      parts: [
        {
          what: 'some repositories',
          ends: 'connected',
          wrong: { kind: 'github', owner: 'Acme', repositories: ['site', 'secret'] },
        },
      ],
      refresh: { switch: github.server.refresh, without: 'failed' },
      items: { 0: { name: 'site', owner: 'Acme' } },
      grow: () => void github.repositories.push('shop'),
      grown: { 0: { name: 'site' }, 1: { name: 'shop' } },
    },
    'x-ads': {
      kind: 'oauth1',
      signIn: () => {
        x.state.user = { id: String(Math.floor(Math.random() * 1e12) + 1), name: 'acme' };
      },
      denies: (denies) => {
        x.state.denies = denies;
      },
      grants: () => undefined,
      revoke: () => x.state.revoke(x.state.user.id),
      tellsAccounts: true,
      choice: { kind: 'x_ads', accountIds: ['18ce54d4x5t'] },
      // OAuth 1.0a has no scopes: a person says yes or no, and reaches the accounts that others share with them.
      parts: [
        {
          what: 'some accounts',
          ends: 'connected',
          wrong: { kind: 'x_ads', accountIds: ['18ce54d4x5t', 'abc1'] },
        },
      ],
      refresh: { impossible: 'tokens of OAuth 1.0a do not end' },
      items: { '18ce54d4x5t': { name: 'Acme' } },
      grow: () => void x.state.accounts.push('gq1'),
      grown: { '18ce54d4x5t': {}, gq1: { name: 'Acme' } },
    },
    mcp: {
      kind: 'oauth2',
      ...personAt(mcp.server),
      revoke: () => atMcp.revoke(),
      tellsAccounts: false,
      address: { kind: 'mcp', serverUrl: mcp.serverUrl },
      parts: [
        // The server takes no token without it, so that the connection does not come about, and nothing pretends that it does.
        {
          what: 'one scope of two',
          grants: (scope) => scope !== 'tools:write',
          asks: (more) => {
            mcp.wanted.scope = more ? 'tools:read tools:write' : 'tools:read';
          },
          ends: 'failed',
        },
      ],
      refresh: { switch: mcp.server.refresh, without: 'connected' },
      items: { search: { name: 'search' } },
      grow: () => void mcp.tools.push('send'),
      grown: { search: {}, send: { name: 'send' } },
    },
  };
  return cases;
}

/** The API with all of them. */
export async function startWithAuthorizations(t: TearDown) {
  const peers = await openAuthorizations(t);
  const app = await startTestApp(t, { config: peers.config });
  return { app, cases: authorizedCases(peers, app) };
}
