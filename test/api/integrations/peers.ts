// The six providers that a person connects by a credential, as servers on loopback with the shapes that are documented.
import type { ServerResponse } from 'node:http';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { openStandIn } from '../../engine/providers/mongo_stand_in.ts';
import { type Call, json, openServer, type Server } from '../../engine/providers/support.ts';
import { startTestApp, type TestApp, type TestAppOptions } from '../../support/app.ts';
import type { TearDown } from '../../support/database.ts';

/** In all that a provider says, and in all credentials: nothing that we hand out may hold it. */
export const PLANTED = 'planted4711';
const UPSTASH = 'https://tidy-cat-30142.upstash.io';
const OTHER_UPSTASH = 'https://other-dog-20031.upstash.io';

export type Peers = Readonly<{
  app: TestApp;
  stripe: Server;
  lemon: Server;
  github: Server;
  upstash: Server;
  mcp: Server;
  mongoPort: number;
  /** What every server but MongoDB's does instead of its own; undefined: its own. */
  faults: { reply: ((call: Call, res: ServerResponse) => unknown) | undefined };
  /** The tools that the MCP server has now. */
  tools: Record<string, unknown>[];
}>;

const store = (id: number) => ({
  id: String(id),
  attributes: { name: `Store ${id}`, slug: `s${id}`, domain: `s${id}.lemonsqueezy.com`, currency: 'EUR' },
});
const initialized = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: PLANTED, version: '1' },
};

/** The API with providers on loopback in place of the real ones. */
export async function startWithPeers(t: TearDown, options: TestAppOptions = {}): Promise<Peers> {
  const faults: Peers['faults'] = { reply: undefined };
  const open = (reply: (call: Call, res: ServerResponse) => unknown) =>
    openServer(t, (call, res) => (faults.reply ?? reply)(call, res));
  const isKnown = ({ headers }: Call) => !/revoked/.test(headers.authorization ?? '');
  const refuse = (res: ServerResponse) =>
    void json(res, 401, { error: { message: PLANTED, type: 'invalid_request_error' } });

  const stripe = await open((call, res) => {
    if (!isKnown(call)) return refuse(res);
    const other = call.headers.authorization?.includes('other');
    return {
      id: other ? 'acct_otherPlanted' : `acct_${PLANTED}`,
      country: 'SE',
      default_currency: 'sek',
      settings: null,
    };
  });
  const lemon = await open((call, res) => {
    if (!isKnown(call)) return refuse(res);
    if (call.url.pathname === '/v1/users/me') {
      const id = call.headers.authorization?.includes('other') ? '8' : '7';
      return { data: { id, attributes: { email: `${PLANTED}@example.com` } } };
    }
    return { data: [store(1), store(2)], meta: { page: { total: 2 } } };
  });
  const github = await open((call, res) => {
    if (!isKnown(call)) return refuse(res);
    if (call.url.pathname === '/user')
      return { id: call.headers.authorization?.includes('other') ? 8 : 7, login: 'anna' };
    return [{ id: 1, name: 'site', owner: { login: 'Acme' }, permissions: { pull: true } }];
  });
  const upstash = await open((call, res) => (isKnown(call) ? { result: 'PONG' } : refuse(res)));
  const tools: Record<string, unknown>[] = [{ name: 'search', inputSchema: { type: 'object' } }];
  const mcp = await open((call, res) => {
    if (call.method !== 'POST') return void res.writeHead(405).end();
    const rpc = JSON.parse(call.body) as { id?: number; method: string };
    if (rpc.id === undefined) return void res.writeHead(202).end();
    return { jsonrpc: '2.0', id: rpc.id, result: rpc.method === 'initialize' ? initialized : { tools } };
  });
  const mongo = await openStandIn(t, {
    username: 'reader',
    password: `${PLANTED}-word`,
    collections: { orders: [{ total: PLANTED, customer: { name: PLANTED } }], carts: [{ n: 1 }] },
  });
  const { integrations } = integrationConfig({
    origins: {
      'https://api.stripe.com': stripe.origin,
      'https://api.lemonsqueezy.com': lemon.origin,
      'https://api.github.com': github.origin,
      [UPSTASH]: upstash.origin,
      [OTHER_UPSTASH]: upstash.origin,
    },
  });
  const config = { integrations, allowPrivateAddresses: true, ...options.config };
  const app = await startTestApp(t, { ...options, config });
  return { app, stripe, lemon, github, upstash, mcp, mongoPort: mongo.port, faults, tools };
}

export type Case = Readonly<{
  settings: Readonly<Record<string, unknown>> | undefined;
  /** They come before the credential. */
  first?: boolean;
  /** The account does not reach what they name. */
  wrong?: Readonly<Record<string, unknown>>;
  credential: Readonly<Record<string, unknown>>;
  /** Of another account; undefined: there is none to tell apart. */
  other?: Readonly<Record<string, unknown>>;
  /** The provider does not accept it. */
  refused?: Readonly<Record<string, unknown>>;
  /** Not even sent. */
  malformed: Readonly<Record<string, unknown>>;
}>;

/** Each of the providers with what it takes. */
export function cases({ mcp, mongoPort }: Peers): Readonly<Record<string, Case>> {
  const mongo = { kind: 'mongodb', host: '127.0.0.1', port: mongoPort, srv: false, tls: false };
  return {
    stripe: {
      settings: { kind: 'stripe' },
      credential: { kind: 'api_key', apiKey: `rk_test_${PLANTED}` },
      other: { kind: 'api_key', apiKey: `rk_test_other${PLANTED}` },
      refused: { kind: 'api_key', apiKey: `rk_test_revoked${PLANTED}` },
      malformed: { kind: 'api_key', apiKey: `sk_live_${PLANTED}` },
    },
    'lemon-squeezy': {
      settings: { kind: 'lemon_squeezy', storeIds: ['1'] },
      wrong: { kind: 'lemon_squeezy', storeIds: ['1', '9'] },
      credential: { kind: 'api_key', apiKey: `${PLANTED}-${'x'.repeat(40)}` },
      other: { kind: 'api_key', apiKey: `${PLANTED}-other-${'x'.repeat(40)}` },
      refused: { kind: 'api_key', apiKey: `${PLANTED}-revoked-${'x'.repeat(40)}` },
      malformed: { kind: 'api_key', apiKey: PLANTED },
    },
    github: {
      settings: { kind: 'github', owner: 'Acme', repositories: ['site'] },
      wrong: { kind: 'github', owner: 'Acme', repositories: ['site', 'other'] },
      credential: { kind: 'github_token', token: `github_pat_${PLANTED}_0123456789` },
      other: { kind: 'github_token', token: `github_pat_other_${PLANTED}_0123456789` },
      refused: { kind: 'github_token', token: `github_pat_revoked_${PLANTED}_0123456789` },
      malformed: { kind: 'github_token', token: `${PLANTED}-no-token` },
    },
    'upstash-redis': {
      settings: { kind: 'upstash_redis', restUrl: UPSTASH, keyScope: { kind: 'prefixes', prefixes: ['app:'] } },
      first: true,
      credential: { kind: 'bearer_token', token: `${PLANTED}-token-0123456789` },
      refused: { kind: 'bearer_token', token: `${PLANTED}-revoked-0123456789` },
      malformed: { kind: 'bearer_token', token: PLANTED.slice(0, 9) },
    },
    mongodb: {
      settings: { kind: 'mongodb', databaseName: 'shop', collections: ['orders'] },
      wrong: { kind: 'mongodb', databaseName: 'shop', collections: ['nothing'] },
      credential: { ...mongo, username: 'reader', password: `${PLANTED}-word` },
      other: { ...mongo, host: 'localhost', username: 'reader', password: `${PLANTED}-word` },
      refused: { ...mongo, username: 'reader', password: `${PLANTED}-wrong` },
      malformed: { ...mongo, port: 22, username: 'reader', password: `${PLANTED}-word` },
    },
    mcp: {
      settings: { kind: 'mcp', serverUrl: `${mcp.origin}/mcp` },
      first: true,
      credential: { kind: 'none' },
      malformed: { kind: 'bearer_token', token: PLANTED },
    },
  };
}

export const otherAddress = {
  kind: 'upstash_redis',
  restUrl: OTHER_UPSTASH,
  keyScope: { kind: 'prefixes', prefixes: ['b:'] },
};
