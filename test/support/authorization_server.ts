// A certified OAuth server on loopback, in the place of a provider: what a person would do there is decided by the test.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import type { TearDown } from './database.ts';

export type Person = {
  account: string;
  /** What of the scopes is granted; false: the person says no. */
  grants: (scope: string) => boolean;
  denies: boolean;
};

type Handler = (req: IncomingMessage, res: ServerResponse) => Promise<boolean> | boolean;

export type ServerOptions = Readonly<{
  issuer: string;
  routes: Readonly<Record<string, string>>;
  scopes: readonly string[];
  client?: Readonly<{ id: string; secret: string }>;
  /** Whether a refresh token comes with a code. */
  refresh?: { isOn: boolean };
  /** More than `routes` of the server, and the provider's own API. */
  features?: Readonly<Record<string, unknown>>;
  configuration?: Readonly<Record<string, unknown>>;
}>;

export async function openAuthorizationServer(t: TearDown, options: ServerOptions) {
  const person: Person = { account: 'anna', grants: () => true, denies: false };
  let handle: (req: IncomingMessage, res: ServerResponse) => void = (_req, res) => res.writeHead(503).end();
  const before: Handler[] = [];
  const server = createServer(async (req, res) => {
    for (const one of before) if (await one(req, res)) return;
    handle(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = options.issuer === '' ? origin : options.issuer;
  const { client, refresh = { isOn: true } } = options;

  /** `publicClients`: those that it knows besides, without a secret. */
  function open(redirectUris: readonly string[], publicClients: readonly string[] = []): Provider {
    const grants = { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };
    const known = publicClients.map((id) => ({
      client_id: id,
      token_endpoint_auth_method: 'none',
      redirect_uris: redirectUris,
      ...grants,
    }));
    const provider = new Provider(issuer, {
      clients: client
        ? [
            ...known,
            {
              client_id: client.id,
              client_secret: client.secret,
              token_endpoint_auth_method: 'client_secret_post',
              redirect_uris: redirectUris,
              ...grants,
            },
          ]
        : known,
      routes: options.routes,
      scopes: ['openid', 'offline_access', ...options.scopes],
      claims: { openid: ['sub'], email: ['email'] },
      cookies: { keys: ['of the tests'] },
      pkce: { required: () => true },
      rotateRefreshToken: true,
      issueRefreshToken: () => refresh.isOn,
      conformIdTokenClaims: false,
      features: { devInteractions: { enabled: false }, revocation: { enabled: true }, ...options.features },
      interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      findAccount: (_ctx: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, email: `${id}@example.com` }),
      }),
      ...options.configuration,
    });
    const callback = provider.callback();
    handle = (req, res) => {
      if (req.url?.startsWith('/interaction/')) void interact(provider, req, res);
      else callback(req, res);
    };
    return provider;
  }

  /** The person signs in, and decides about what is asked for. */
  async function interact(provider: Provider, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { prompt, params, session } = await provider.interactionDetails(req, res);
    const finish = (result: Readonly<Record<string, unknown>>) =>
      provider.interactionFinished(req, res, result, { mergeWithLastSubmission: true });
    if (person.denies) return finish({ error: 'access_denied', error_description: 'planted text of a provider' });
    if (prompt.name === 'login' || session?.accountId !== person.account) {
      return finish({ login: { accountId: person.account } });
    }
    const grant = new provider.Grant({ accountId: person.account, clientId: String(params['client_id']) });
    for (const scope of String(params['scope'] ?? '').split(' ')) {
      if (scope === '') continue;
      const resource = params['resource'];
      if (person.grants(scope)) {
        grant.addOIDCScope(scope);
        if (typeof resource === 'string') grant.addResourceScope(resource, scope);
      } else {
        grant.rejectOIDCScope(scope);
        if (typeof resource === 'string') grant.rejectResourceScope(resource, scope);
      }
    }
    return finish({ consent: { grantId: await grant.save() } });
  }

  return { origin, issuer, person, refresh, before, open };
}

/** Follows redirects as a browser does, with the cookies of each origin, until an address that `stops` names. */
export function openBrowser() {
  const jars = new Map<string, Map<string, string>>();
  async function send(url: URL, init: RequestInit): Promise<Response> {
    const jar = jars.get(url.origin) ?? new Map<string, string>();
    jars.set(url.origin, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: { accept: 'text/html', ...(cookie === '' ? {} : { cookie }), ...init.headers },
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const at = pair.indexOf('=');
      if (/expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(pair.slice(0, at));
      else jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return response;
  }
  async function go(
    address: string | URL,
    stops: (url: URL) => boolean,
    init: RequestInit = {},
  ): Promise<Readonly<{ url: URL; response: Response | undefined }>> {
    let url = new URL(address);
    let request = init;
    for (let hops = 0; hops < 20; hops += 1) {
      if (stops(url)) return { url, response: undefined };
      const response = await send(url, request);
      const location = response.headers.get('location');
      if (location === null) return { url, response };
      await response.body?.cancel();
      url = new URL(location, url);
      request = {};
    }
    throw new Error(`too many redirects, the last one to ${url.origin}${url.pathname}`);
  }
  return { go, cookies: (origin: string) => jars.get(origin) };
}
