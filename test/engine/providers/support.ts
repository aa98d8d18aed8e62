import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type * as Tap from 'tap';
import {
  type Bucket,
  createProviderClient,
  type ObservedCall,
  type ProviderClient,
  type ProviderClientOptions,
  ProviderError,
  type ProviderReason,
} from '../../../engine/providers/outgoing/index.ts';
import type { TearDown } from '../../support/database.ts';

export type Call = Readonly<{ method: string; url: URL; headers: IncomingHttpHeaders; body: string }>;
export type Reply = (call: Call, res: ServerResponse) => unknown;
export type Server = Readonly<{ origin: string; calls: Call[] }>;

/** A provider's server on loopback. What `reply` returns is sent as JSON; with undefined it responds by itself. */
export async function openServer(t: TearDown, reply: Reply): Promise<Server> {
  const calls: Call[] = [];
  const server = createServer(async (req, res) => {
    let body = '';
    try {
      for await (const chunk of req) body += chunk;
    } catch {
      // Its client broke it off.
      return;
    }
    const call = {
      method: req.method ?? '',
      url: new URL(req.url ?? '', 'http://server'),
      headers: req.headers,
      body,
    };
    calls.push(call);
    const value = await reply(call, res);
    if (value !== undefined) json(res, 200, value);
  });
  server.on('connection', (socket) => socket.on('error', () => {}));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls };
}

export function json(res: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void {
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers }).end(JSON.stringify(value));
}

export type TestClient = ProviderClient &
  Readonly<{ observed: ObservedCall[]; postponed: { keys: string[]; until: Date }[]; taken: Bucket[][] }>;

type TestOptions = Partial<Omit<ProviderClientOptions, 'budgets' | 'observe'>> &
  Readonly<{ take?: () => Date | undefined }>;

/** The real client with an origin in place of others, no pauses, and budgets that record what they are asked. */
export function openClient(
  t: TearDown,
  origins: Readonly<Record<string, string>>,
  options: TestOptions = {},
): TestClient {
  const { take = () => undefined, ...given } = options;
  const observed: ObservedCall[] = [];
  const postponed: { keys: string[]; until: Date }[] = [];
  const taken: Bucket[][] = [];
  const client = createProviderClient({
    allowPrivateAddresses: true,
    origins: new Map(Object.entries(origins)),
    random: () => 0,
    ...given,
    observe: (call) => observed.push(call),
    budgets: {
      async take(buckets) {
        taken.push([...buckets]);
        return take();
      },
      async postpone(buckets, until) {
        postponed.push({ keys: buckets.map(({ key }) => key), until });
      },
    },
  });
  t.teardown(() => client.close());
  return { ...client, observed, postponed, taken };
}

/** The error, which has to be one of this reason. */
export async function fails(
  t: Pick<Tap.Test, 'ok' | 'equal' | 'fail' | 'notOk'>,
  promise: Promise<unknown>,
  reason: ProviderReason,
  what: string,
): Promise<ProviderError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ProviderError)) throw new Error(`${what}: ${error}`, { cause: error });
  t.equal(error.reason, reason, what);
  t.notOk(error.cause, 'a cause could hold what the provider sent');
  return error;
}
