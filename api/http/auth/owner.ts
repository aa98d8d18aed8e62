import type { Request } from 'express';
import { sql } from 'slonik';
import { z } from 'zod';
import { tokenMatcher } from '../../../engine/bearer.ts';
import { type Config, isLoopback } from '../../../engine/config.ts';
import type { Queries } from '../../../engine/db/call.ts';
import { Problem } from '../../../engine/db/problem.ts';
import { scoped } from '../../../engine/db/scope.ts';
import type { OwnerCaller } from '../caller.ts';
import { bearerToken, sha256Hex, ownerUnauthorized as unauthorized } from './bearer.ts';

type Authenticate = (req: Request) => OwnerCaller | Promise<OwnerCaller>;
/** `ownerToken`: the endpoint takes a token in open mode too. */
type Authentication = (req: Request, ownerToken: boolean) => OwnerCaller | Promise<OwnerCaller>;

const forbidden = (message: string) => new Problem(403, 'forbidden', message);

/** The host name of a `Host` header, without port. */
function hostName(host: string): string {
  return host.replace(/:\d+$/, '');
}

/**
 * Open mode trusts whoever reaches the loopback address, and a browser reaches it for any web page: a page whose name
 * was rebound to 127.0.0.1 shows in `Host`, one that posts across sites in `Origin`.
 */
function openOwner(req: Request): OwnerCaller {
  const host = req.get('host') ?? '';
  if (!isLoopback(hostName(host))) throw forbidden('Without owner authentication only a loopback Host is served.');
  const origin = req.get('origin');
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) {
    throw forbidden('Without owner authentication requests from other web sites are refused.');
  }
  return { kind: 'owner', mode: 'open', subject: null, platform: true };
}

function tokenCheck(tokens: readonly string[], required: string): (req: Request) => string {
  const matches = tokenMatcher(tokens);
  return (req) => {
    const token = bearerToken(req);
    if (token === undefined) throw unauthorized(required);
    if (!matches(token)) throw unauthorized('The bearer token is not valid.', 'invalid_token');
    return token;
  };
}

/** Who reaches the loopback port may be an agent of this machine: what decides about agents takes the owner's token. */
function openAuthentication(tokens: readonly string[]): Authentication {
  const check = tokenCheck(
    tokens,
    'This call takes an owner’s token in open mode too: that of the file owner-token, or of OWNER_TOKENS.',
  );
  return (req, ownerToken) => {
    const caller = openOwner(req);
    if (ownerToken) check(req);
    return caller;
  };
}

function tokenOwner(tokens: readonly string[]): Authenticate {
  const check = tokenCheck(tokens, 'A bearer token is required.');
  return (req) => {
    const tokenHash = sha256Hex(check(req));
    return { kind: 'owner', mode: 'token', subject: null, platform: true, tokenHash };
  };
}

/** What reads signed tokens is loaded where they are used. */
function jwtOwner(auth: Extract<Config['ownerAuth'], { mode: 'jwt' }>): Authenticate {
  const loaded = import('./jwt.ts').then(({ jwtAuthentication }) => jwtAuthentication(auth));
  return async (req) => (await loaded)(req);
}

function authenticationOf(auth: Config['ownerAuth']): Authentication {
  if (auth.mode === 'open') return openAuthentication(auth.tokens);
  return auth.mode === 'token' ? tokenOwner(auth.tokens) : jwtOwner(auth);
}

const made = new WeakMap<Config['ownerAuth'], Authentication>();

/** The check of the configured mode (docs/interface.md 5.1): one of a process, since it keeps the key set that it has fetched. */
export function ownerAuthentication({ ownerAuth }: Config): Authentication {
  const authentication = made.get(ownerAuth) ?? authenticationOf(ownerAuth);
  made.set(ownerAuth, authentication);
  return authentication;
}

/**
 * Subjects of tokens reach only the organizations they are members of; platform operators all.
 * @throws Problem 404 for others, as if it did not exist; 403 for a viewer who writes
 */
export async function checkMembership(
  queries: Queries,
  caller: OwnerCaller,
  organizationId: string,
  writes: boolean,
): Promise<void> {
  if (caller.platform) return;
  const member = await queries.maybeOne(
    scoped(
      organizationId,
      z.object({ role: z.string() }),
      sql.fragment`
        select m.role
        from app.organization_members m
        where m.organization_id = scope.organization_id
          and m.subject = ${caller.subject}`,
    ),
  );
  if (!member) throw new Problem(404, 'organization_not_found', 'There is no organization with this id.');
  if (writes && member.role !== 'owner') throw forbidden('Viewers may read only.');
}
