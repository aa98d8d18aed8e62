import type { Request } from 'express';
import type { AdminToken } from '../../../engine/admin_tokens.ts';
import { tokenFinder } from '../../../engine/bearer.ts';
import type { Config } from '../../../engine/config.ts';
import { Problem } from '../../../engine/db/problem.ts';
import type { AdminCaller } from '../caller.ts';
import { isSameOrigin, sessionCookie, sessionOwner } from './admin_session.ts';
import { bearerToken } from './bearer.ts';

const unauthorized = (message: string) => new Problem(401, 'admin_unauthorized', message);

/** Whose token of ADMIN_TOKENS one is. */
export function adminFinder({ adminTokens }: Config): (token: string) => AdminToken | undefined {
  return tokenFinder(adminTokens, ({ token }) => token);
}

/** Administrators: a bearer token of ADMIN_TOKENS, or the session of the explorer's own page. */
export function adminAuthentication(config: Config): (req: Request) => AdminCaller {
  const findAdmin = adminFinder(config);
  return (req) => {
    const token = bearerToken(req);
    if (token !== undefined) {
      const admin = findAdmin(token);
      if (!admin) throw unauthorized('The bearer token is not valid.');
      return { kind: 'admin', name: admin.name };
    }
    const session = sessionCookie(req);
    if (session === undefined) throw unauthorized('A bearer token is required.');
    // The page is only read; what it sends has to come from itself.
    if (req.method !== 'GET' && !isSameOrigin(req)) throw unauthorized('Requests from other web sites are refused.');
    const admin = sessionOwner(config.adminTokens, session);
    if (!admin) throw unauthorized('The session is over: sign in again.');
    return { kind: 'admin', name: admin.name };
  };
}
