// X on loopback: what we sign is checked by a library that is not ours.
import { createHmac, randomUUID } from 'node:crypto';
import OAuth from 'oauth-1.0a';
import { type Call, json, openServer } from '../../engine/providers/support.ts';
import type { TearDown } from '../../support/database.ts';

const given = ({ headers }: Call) =>
  Object.fromEntries(
    [...(headers.authorization ?? '').matchAll(/(oauth_\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [
      name,
      decodeURIComponent(value),
    ]),
  );

export async function openX(t: TearDown) {
  const consumer = { key: 'x-consumer', secret: 'x-secret' };
  const signer = new OAuth({
    consumer,
    signature_method: 'HMAC-SHA1',
    hash_function: (base, key) => createHmac('sha1', key).update(base).digest('base64'),
  });
  /** Of each token that lives. */
  const secrets = new Map([['', '']]);
  /** Where each request token sends the browser back to. */
  const callbacks = new Map<string, string>();
  const state = {
    user: { id: '7', name: 'acme' },
    denies: false,
    isLimiting: false,
    /** It refuses, in the words of the request. */
    isRepeating: false,
    nameOf: (_token: string) => 'acme',
    requests: 0,
    steps: [] as string[],
    /** Ids of the ads accounts that each person reaches. */
    accounts: ['18ce54d4x5t'],
    consumer,
    /** The person takes the authorization back, or we did. */
    revoke: (id: string) => void secrets.delete(`${id}-access`),
    isAuthorized: (id: string) => secrets.has(`${id}-access`),
  };

  function isSigned(call: Call): boolean {
    const { oauth_signature: signature, ...rest } = given(call);
    const secret = secrets.get(rest['oauth_token'] ?? '');
    const { url, method } = call;
    const name = url.pathname.startsWith('/12/') ? 'ads-api' : 'api';
    const request = { url: `https://${name}.x.com${url.pathname}${url.search}`, method, data: {} };
    return secret !== undefined && signature === signer.getSignature(request, secret, rest as unknown as OAuth.Data);
  }

  const server = await openServer(t, (call, res) => {
    const { pathname, searchParams } = call.url;
    state.steps.push(pathname);
    if (pathname === '/oauth/authorize') {
      const token = searchParams.get('oauth_token') ?? '';
      const query = state.denies
        ? `denied=${token}`
        : `oauth_token=${token}&oauth_verifier=${state.user.id}.${randomUUID()}`;
      res.writeHead(302, { location: `${callbacks.get(token)}?${query}` }).end();
      return undefined;
    }
    if (state.isRepeating) {
      const { authorization } = call.headers;
      json(res, 400, {
        errors: [{ code: given(call)['oauth_token'], message: authorization }],
        request: authorization,
      });
      return undefined;
    }
    if (!isSigned(call)) {
      json(res, 401, { errors: [{ code: 'WRONG_SIGNATURE' }] });
      return undefined;
    }
    const { oauth_token: presented = '', oauth_callback: callback = '', oauth_verifier: verifier } = given(call);
    if (pathname === '/oauth/request_token') {
      if (state.isLimiting) {
        json(res, 429, {}, { 'retry-after': '1' });
        return undefined;
      }
      state.requests += 1;
      const token = `request-${randomUUID()}`;
      secrets.set(token, `request-secret-${randomUUID()}`);
      callbacks.set(token, callback);
      res.end(`oauth_token=${token}&oauth_token_secret=${secrets.get(token)}&oauth_callback_confirmed=true`);
      return undefined;
    }
    if (pathname === '/oauth/access_token') {
      // One token for a person and an app, however often it is asked for.
      const [user] = (verifier ?? '').split('.');
      const token = `${user}-access`;
      secrets.delete(presented);
      secrets.set(token, secrets.get(token) ?? `${user}-access-secret-${randomUUID()}`);
      res.end(
        `oauth_token=${token}&oauth_token_secret=${secrets.get(token)}&user_id=${user}&screen_name=${state.nameOf(token)}`,
      );
      return undefined;
    }
    if (pathname === '/1.1/oauth/invalidate_token.json') {
      secrets.delete(presented);
      return {};
    }
    if (pathname === '/12/accounts') return { data: state.accounts.map((id) => ({ id, name: 'Acme' })) };
    return { data: { id: presented.split('-')[0], username: 'acme' } };
  });
  return { state, origins: { 'https://api.x.com': server.origin, 'https://ads-api.x.com': server.origin } };
}
