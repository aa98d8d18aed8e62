// The API with all that it waits for besides Postgres on loopback: files, a website, a model, providers, an authorization server.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { receiptKeys } from '../../../../engine/receipts/index.ts';
import { integrationConfig } from '../../../engine/integrations/support.ts';
import { openStandIn } from '../../../engine/providers/mongo_stand_in.ts';
import { type Call, json, openServer } from '../../../engine/providers/support.ts';
import { html } from '../../../engine/website/support.ts';
import { startTestApp, type TestApp } from '../../../support/app.ts';
import type { TearDown } from '../../../support/database.ts';

const PROVIDERS = [
  'https://accounts.google.com',
  'https://analyticsadmin.googleapis.com',
  'https://api.github.com',
  'https://api.lemonsqueezy.com',
  'https://api.stripe.com',
  'https://api.x.com',
  'https://github.com',
  'https://oauth2.googleapis.com',
  'https://openidconnect.googleapis.com',
];

export const MONGO_USER = { username: 'reader', password: 'word' };

export type World = Readonly<{
  app: TestApp;
  origin: string;
  mongoPort: number;
  /** What an MCP server behind `origin` says of its authorization. */
  authorization: Readonly<Record<string, unknown>>;
}>;

/** @param standStill is awaited wherever the API waits, before what it waits for goes on */
export async function startWorld(t: TearDown, standStill: (what: string) => Promise<void>): Promise<World> {
  function reply({ url }: Call, res: ServerResponse): unknown {
    if (url.pathname === '/prices') {
      res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html('Prices', [], 'Small: 9 €.'));
      return undefined;
    }
    if (url.pathname.startsWith('/.well-known/oauth-protected-resource')) {
      return { resource: `${server.origin}/mcp`, authorization_servers: [server.origin] };
    }
    if (url.pathname.startsWith('/.well-known/oauth-authorization-server')) return authorization;
    if (url.pathname === '/register') return void json(res, 201, { client_id: 'runner' });
    if (url.pathname === '/mcp') {
      const resource = `${server.origin}/.well-known/oauth-protected-resource/mcp`;
      return void json(res, 401, {}, { 'www-authenticate': `Bearer resource_metadata="${resource}"` });
    }
    return url.pathname === '/robots.txt' ? void json(res, 404, {}) : {};
  }
  const server = await openServer(t, async (call, res) => {
    await standStill(`${call.method} ${call.url.pathname}`);
    return reply(call, res);
  });
  const at = (path: string) => `${server.origin}${path}`;
  const authorization = {
    issuer: server.origin,
    authorization_endpoint: at('/authorize'),
    token_endpoint: at('/token'),
    revocation_endpoint: at('/revoke'),
    registration_endpoint: at('/register'),
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
  };
  const behind = await openStandIn(t, { ...MONGO_USER, collections: { orders: [] } });
  const mongo = createServer((socket) => {
    socket.on('error', () => {});
    void standStill('mongodb').then(() => {
      const peer = connect(behind.port, '127.0.0.1').on('error', () => {});
      socket.pipe(peer).pipe(socket);
    });
  });
  mongo.listen(0, '127.0.0.1');
  await once(mongo, 'listening');
  t.teardown(async () => {
    mongo.close();
  });

  const { integrations } = integrationConfig({
    origins: Object.fromEntries(PROVIDERS.map((name) => [name, server.origin])),
  });
  const app = await startTestApp(t, {
    config: {
      integrations,
      allowPrivateAddresses: true,
      receiptKeys: receiptKeys.parse(Buffer.alloc(32, 7).toString('base64')),
      researchModel: { url: at('/v1'), model: 'm', key: undefined },
    },
  });
  const { storage, evaluateAcceptance } = app.services;
  const slow =
    <A extends readonly unknown[], T>(what: string, work: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      await standStill(what);
      return work(...args);
    };
  Object.assign(app.services, {
    evaluateAcceptance: slow('acceptance', evaluateAcceptance),
    storage: {
      ...storage,
      put: slow('put', storage.put),
      get: slow('get', storage.get),
      stat: slow('stat', storage.stat),
      delete: slow('delete', storage.delete),
    },
  });
  return { app, origin: server.origin, mongoPort: (mongo.address() as AddressInfo).port, authorization };
}
