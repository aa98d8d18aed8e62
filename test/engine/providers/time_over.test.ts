// A write of several steps, of a call whose time ends: before the last step is sent, nothing was done.
import type * as Tap from 'tap';
import t from 'tap';
import { googleWorkspace } from '../../../engine/providers/google-workspace/index.ts';
import type { Provider } from '../../../engine/providers/index.ts';
import { lemonSqueezy } from '../../../engine/providers/lemon-squeezy/index.ts';
import { mcp } from '../../../engine/providers/mcp/index.ts';
import { mongodb } from '../../../engine/providers/mongodb/index.ts';
import { xAds } from '../../../engine/providers/x-ads/index.ts';
import { fileOf, GOOGLE } from './google_workspace_support.ts';
import { type Call, fails, json, openClient, openServer } from './support.ts';
import { toolsOf } from './tool_calls.ts';

const MIB = 1024 * 1024;
const CAMPAIGN = { accountId: 'abc', campaignId: '8wku2', currency: 'EUR', dailyBudgetAmountLocal: '40.5' };

type Step = Readonly<{
  provider: Provider;
  tool: string;
  args: object;
  credential: object;
  settings?: object | ((origin: string) => object);
  origins?: readonly string[];
  files?: Parameters<ReturnType<typeof toolsOf>['execute']>[2];
}>;

/** The call ends when the server has got so many requests; what it was asked before is answered by `reply`. */
async function endedAt(
  test: Tap.Test,
  requests: number,
  step: Step,
  reply?: (call: Call) => readonly [number, object],
) {
  const late = new DOMException('late', 'TimeoutError');
  const ends = new AbortController();
  const server = await openServer(test, (call, res) => {
    if (server.calls.length >= requests) ends.abort(late);
    else {
      const [status, headers] = reply?.(call) ?? [200, {}];
      json(res, status, {}, headers as Record<string, string>);
    }
    return undefined;
  });
  if (requests === 0) ends.abort(late);
  const { provider, credential, origins = [] } = step;
  const client = openClient(test, Object.fromEntries(origins.map((origin) => [origin, server.origin])));
  const settings = typeof step.settings === 'function' ? step.settings(server.origin) : (step.settings ?? null);
  const deploymentClient = { id: 'key', secret: 'secret' };
  const tools = toolsOf(provider, { client, credential, settings, deploymentClient, signal: ends.signal });
  return { late, server, done: tools.execute(step.tool, step.args, step.files) };
}

const STEPS: Readonly<Record<string, Step>> = {
  'a refund at Lemon Squeezy': {
    provider: lemonSqueezy,
    tool: 'lemon_squeezy.orders.refund',
    args: { orderId: '7' },
    credential: { kind: 'api_key', apiKey: 'x'.repeat(40) },
    settings: { kind: 'lemon_squeezy', storeIds: ['1'] },
    origins: ['https://api.lemonsqueezy.com'],
  },
  'a budget of X Ads': {
    provider: xAds,
    tool: 'x_ads.campaigns.budget.update',
    args: CAMPAIGN,
    credential: { kind: 'oauth1', token: 't', secret: 's', userId: '1', screenName: 'a' },
    settings: { kind: 'x_ads', accountIds: ['abc'] },
    origins: ['https://ads-api.x.com'],
  },
  'a tool of a server': {
    provider: mcp,
    tool: 'issues.create',
    args: { title: 'x' },
    credential: { kind: 'none' },
    settings: (origin) => ({ kind: 'mcp', serverUrl: `${origin}/mcp` }),
  },
};

t.test('what is asked before a write ends without it', async (test) => {
  for (const [what, step] of Object.entries(STEPS)) {
    const { done, server } = await endedAt(test, 1, step);
    const error = await fails(test, done, 'unavailable', what);
    test.match(error, { isRefusal: true, message: /time of the call was over before anything was done/ }, what);
    test.ok(server.calls.length > 0, what);
  }
});

t.test('a server of MongoDB that is not connected to has written nothing', async (test) => {
  const step: Step = {
    provider: mongodb,
    tool: 'mongodb.insert_one',
    args: { collection: 'orders', document: { a: 1 } },
    credential: {
      kind: 'mongodb',
      host: '127.0.0.1',
      port: 27_017,
      srv: false,
      tls: false,
      username: 'a',
      password: 'b',
    },
    settings: { kind: 'mongodb', databaseName: 'shop', collections: ['orders'] },
  };
  const error = await fails(test, (await endedAt(test, 0, step)).done, 'unavailable', 'MongoDB');
  test.equal(error.isRefusal, true);
});

t.test('an upload to Drive makes nothing before its last chunk', async (test) => {
  const file = fileOf('a.bin', 'text/plain', Buffer.alloc(17 * MIB), MIB);
  const step: Step = {
    provider: googleWorkspace,
    tool: 'google_workspace.drive.files.upload',
    args: {},
    credential: { kind: 'oauth2', accessToken: 'ya29.x', refreshToken: 'r', scopes: [], expiresAt: null },
    origins: [GOOGLE],
    files: { file },
  };
  // The session is begun, and three chunks follow.
  const reply = ({ method, headers }: Call) => {
    if (method === 'POST') return [200, { location: `${GOOGLE}/upload/drive/v3/files?upload_id=u1` }] as const;
    const [, end] = /^bytes \d+-(\d+)\//.exec(String(headers['content-range'])) ?? [];
    return [308, { range: `bytes=0-${end}` }] as const;
  };
  for (const requests of [1, 2, 3]) {
    const { done, server } = await endedAt(test, requests, step, reply);
    const error = await fails(test, done, 'unavailable', `${requests} requests`);
    test.equal(error.isRefusal, true);
    test.equal(server.calls.length, requests);
  }
  const { done, server, late } = await endedAt(test, 4, step, reply);
  await test.rejects(done, late, 'nobody knows of the last one');
  test.equal(server.calls.length, 4);
});
