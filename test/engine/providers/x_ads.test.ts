import type * as Tap from 'tap';
import t from 'tap';
import { xAds } from '../../../engine/providers/x-ads/index.ts';
import { oauth1Header } from '../../../engine/providers/x-ads/oauth1.ts';
import { fails, json, openClient, openServer, type Reply } from './support.ts';

const deploymentClient = { id: 'consumer', secret: 'consumer-secret' };
const callbackUrl = 'https://runner.example/oauth/x-ads/callback';

function flow() {
  if (!xAds.oauth1) throw new Error('no flow');
  return xAds.oauth1;
}

async function open(test: Tap.Test, reply: Reply) {
  const server = await openServer(test, reply);
  const origins = { 'https://api.x.com': server.origin, 'https://ads-api.x.com': server.origin };
  const client = openClient(test, origins);
  return { server, client, context: { client, account: 'i1', deploymentClient } };
}

t.test('the example of the documentation has its signature', (test) => {
  // There `status` stands in a form: signed are its parameters and those of the query as one.
  const url = new URL('https://api.x.com/1.1/statuses/update.json?include_entities=true');
  url.searchParams.set('status', 'Hello Ladies + Gentlemen, a signed OAuth request!');
  const header = oauth1Header(
    { method: 'post', url },
    { key: 'xvz1evFS4wEEPTGEFPHBog', secret: 'kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw' },
    {
      token: '370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb',
      secret: 'LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE',
    },
    { nonce: 'kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg', timestamp: 1_318_622_958 },
  );
  test.match(header, `oauth_signature="${encodeURIComponent('Ls93hJiZbQ3akF3HF3x1Bz8/zU4=')}"`);
  test.match(header, /^OAuth oauth_consumer_key="xvz1evFS4wEEPTGEFPHBog", oauth_nonce=/);
  test.end();
});

t.test('three steps lead to a token and its user', async (test) => {
  const { context, server } = await open(test, ({ url }, res) => {
    const form =
      url.pathname === '/oauth/request_token'
        ? 'oauth_token=request&oauth_token_secret=rs&oauth_callback_confirmed=true'
        : 'oauth_token=7-access&oauth_token_secret=as&user_id=7&screen_name=acme';
    res.writeHead(200, { 'content-type': 'text/html' }).end(form);
  });
  const begun = await flow().begin(context, { callbackUrl, accessMode: 'read_only' });
  test.match(begun, { token: 'request', secret: 'rs' });
  test.equal(begun.url.href, `${server.origin}/oauth/authorize?oauth_token=request`);
  test.equal(server.calls[0]?.url.searchParams.get('x_auth_access_type'), 'read');
  test.match(server.calls[0]?.headers.authorization, `oauth_callback="${encodeURIComponent(callbackUrl)}"`);
  const finished = await flow().finish(context, { ...begun, verifier: 'verified' });
  test.same(finished, {
    credential: { kind: 'oauth1', token: '7-access', secret: 'as', userId: '7', screenName: 'acme' },
    account: { subject: '7', label: '@acme' },
  });
  test.match(server.calls[1]?.headers.authorization, /oauth_token="request".*oauth_verifier="verified"/);
});

t.test('a callback that is not confirmed is refused, and without a consumer nothing is sent', async (test) => {
  const { context, server } = await open(
    test,
    (_call, res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('oauth_token=a&oauth_token_secret=b'),
  );
  await fails(test, flow().begin(context, { callbackUrl, accessMode: 'full' }), 'failed', 'not confirmed');
  const without = { ...context, deploymentClient: undefined };
  await fails(test, flow().begin(without, { callbackUrl, accessMode: 'full' }), 'refused', 'no consumer');
  test.equal(server.calls.length, 1);
});

const credential = { kind: 'oauth1', token: '7-access', secret: 'as', userId: '7', screenName: 'acme' };
const access = { credential, settings: null };

t.test('ads accounts are one page, and a limit is what the account says', async (test) => {
  const now = Date.now();
  const second = Math.floor(now / 1_000);
  let isLimited = false;
  const { context, client } = await open(test, ({ url }, res) => {
    if (isLimited) {
      const headers = {
        'x-rate-limit-reset': String(second + 900),
        'x-account-rate-limit-reset': String(second + 300),
      };
      json(res, 429, { errors: [{ code: 'TOO_MANY_REQUESTS' }] }, headers);
      return undefined;
    }
    if (url.pathname === '/2/users/me') return { data: { id: '7', name: 'Acme', username: 'acme' } };
    return {
      data: [{ id: '18ce54d4x5t', name: 'Acme', timezone: 'Europe/Berlin', approval_status: 'ACCEPTED' }],
      next_cursor: null,
    };
  });
  test.same(await xAds.verify(context, access), { subject: '7', label: '@acme' });
  const found = await xAds.discover(context, access);
  test.same(found, {
    items: [{ id: '18ce54d4x5t', name: 'Acme', timeZone: 'Europe/Berlin', approvalStatus: 'accepted' }],
    truncated: false,
  });
  test.match(xAds.checkSettings({ kind: 'x_ads', accountIds: ['abc'] }, found), [{ path: ['accountIds', 0] }]);
  isLimited = true;
  const error = await fails(test, xAds.discover(context, access), 'rate_limited', '429');
  test.equal(error.code, 'TOO_MANY_REQUESTS');
  test.ok(Math.abs((error.retryNotBefore?.getTime() ?? 0) - (second + 300) * 1_000) < 2_000, 'that of the account');
  test.match(client.taken.at(-1), [{ key: 'x-ads:accounts:i1', capacity: 5 }]);
});

t.test(
  'a token of another user than the one who authorized is an error, and a revoked one is revoked',
  async (test) => {
    const { context } = await open(test, ({ url }, res) => {
      if (url.pathname === '/2/users/me') return { data: { id: '8', username: 'other' } };
      json(res, 401, { errors: [{ code: 89 }] });
      return undefined;
    });
    await fails(test, xAds.verify(context, access), 'failed', 'another user');
    await flow().revoke(context, credential);
  },
);
