// GitHub on loopback: its authorization server, the user behind a token, and the deletion of the App's grant by the client.
import type { IncomingMessage } from 'node:http';
import { json } from '../../engine/providers/support.ts';
import { openAuthorizationServer } from '../../support/authorization_server.ts';
import type { TearDown } from '../../support/database.ts';

async function bodyOf(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of req) text += chunk;
  return text;
}

/** A number for each name. */
const idOf = (account: string) => Number.parseInt(Buffer.from(account).toString('hex').slice(-10), 16);

export async function openGithub(t: TearDown) {
  const server = await openAuthorizationServer(t, {
    issuer: 'https://github.com/login/oauth',
    routes: { authorization: '/login/oauth/authorize', token: '/login/oauth/access_token' },
    scopes: ['account'],
    client: { id: 'github-client', secret: 'github-secret' },
  });
  // Of an App nobody asks for scopes; this server ends what asks for none.
  server.before.push((req) => {
    if (req.url?.startsWith('/login/oauth/authorize?')) req.url += '&scope=account';
    return false;
  });
  /** By its account: the last grant that it gave. */
  const grants = new Map<string, string>();
  /** What the App was installed for. */
  const repositories = ['site'];
  const naming = { loginOf: (account: string, _token: string) => account };

  return {
    server,
    repositories,
    naming,
    origins: { 'https://github.com': server.origin, 'https://api.github.com': server.origin },
    /** Lets the authorizations of an app end at it. */
    open(appUrl: string) {
      const provider = server.open([`${appUrl}/oauth/github/callback`]);
      async function end(grantId: string): Promise<void> {
        await provider.RefreshToken.revokeByGrantId(grantId);
        await provider.AccessToken.revokeByGrantId(grantId);
      }
      server.before.push(async (req, res) => {
        if (req.url === '/user') {
          const value = (req.headers.authorization ?? '').slice('Bearer '.length);
          const token = await provider.AccessToken.find(value);
          if (token?.accountId !== undefined) {
            grants.set(token.accountId, token.grantId ?? '');
            json(res, 200, { id: idOf(token.accountId), login: naming.loginOf(token.accountId, value) });
          } else json(res, 401, { message: 'Bad credentials' });
          return true;
        }
        const { pathname } = new URL(req.url ?? '', server.origin);
        if (pathname.startsWith('/user/installations')) {
          const token = await provider.AccessToken.find((req.headers.authorization ?? '').slice('Bearer '.length));
          const named = repositories.map((name, id) => ({ id, name, owner: { login: 'Acme' } }));
          const found = pathname.endsWith('/repositories')
            ? { total_count: named.length, repositories: named }
            : { total_count: 1, installations: [{ id: 1 }] };
          json(res, token === undefined ? 401 : 200, token === undefined ? {} : found);
          return true;
        }
        if (req.method !== 'DELETE' || req.url !== '/applications/github-client/grant') return false;
        const { access_token: value } = JSON.parse(await bodyOf(req)) as { access_token: string };
        const basic = Buffer.from('github-client:github-secret').toString('base64');
        const token = await provider.AccessToken.find(value);
        if (!token || req.headers.authorization !== `Basic ${basic}`) {
          json(res, 404, { message: 'Not Found' });
          return true;
        }
        await end(token.grantId ?? '');
        res.writeHead(204).end();
        return true;
      });
      return {
        /** The person takes the authorization of the App back, at GitHub. */
        revoke: (account: string) => end(grants.get(account) ?? ''),
      };
    },
  };
}
