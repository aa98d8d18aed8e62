import type { Request } from 'express';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { sql } from 'slonik';
import { z } from 'zod';
import { tokenMatcher } from '../../../engine/bearer.ts';
import { type Config, isLoopback } from '../../../engine/config.ts';
import type { Queries } from '../../../engine/db/call.ts';
import { Problem } from '../../../engine/db/problem.ts';
import { scoped } from '../../../engine/db/scope.ts';
import type { OwnerCaller } from '../caller.ts';
import { UnavailableError } from '../errors.ts';
import { bearerToken, sha256Hex } from './bearer.ts';

type Authenticate = (req: Request) => OwnerCaller | Promise<OwnerCaller>;
/** `ownerToken`: the endpoint takes a token in open mode too. */
type Authentication = (req: Request, ownerToken: boolean) => OwnerCaller | Promise<OwnerCaller>;

function unauthorized(message: string, error?: string): Problem {
  const challenge = `Bearer realm="business-runner"${error ? `, error="${error}"` : ''}`;
  return new Problem(401, 'owner_unauthorized', message, undefined, { 'WWW-Authenticate': challenge });
}

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

// Signatures by key pairs alone: with a shared secret the key set itself could sign.
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const CLOCK_TOLERANCE_S = 5;
const subjectSchema = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\0-\x1f\x7f]+$/);

/** True for what says something about the token, not about the key set's server. */
function tokenIsWrong(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid) return false;
  if (error instanceof errors.JOSEError) return error.code !== 'ERR_JOSE_GENERIC';
  return false;
}

function jwtOwner(auth: Extract<Config['ownerAuth'], { mode: 'jwt' }>): Authenticate {
  const keys = createRemoteJWKSet(new URL(auth.jwksUrl), { timeoutDuration: 5_000, cooldownDuration: 10_000 });
  return async (req) => {
    const token = bearerToken(req);
    if (token === undefined) throw unauthorized('A bearer token is required.');
    const verified = await jwtVerify(token, keys, {
      issuer: auth.issuer,
      audience: auth.audience,
      algorithms,
      clockTolerance: CLOCK_TOLERANCE_S,
      requiredClaims: ['sub', 'exp'],
    }).catch((error: unknown) => {
      if (tokenIsWrong(error)) throw unauthorized('The bearer token is not valid.', 'invalid_token');
      throw new UnavailableError('The key set that owner tokens are checked with cannot be read.', { cause: error });
    });
    const subject = subjectSchema.safeParse(verified.payload.sub);
    if (!subject.success) throw unauthorized('The bearer token has no usable subject.', 'invalid_token');
    const expiresAt = ((verified.payload.exp ?? 0) + CLOCK_TOLERANCE_S) * 1000;
    return { kind: 'owner', mode: 'jwt', subject: subject.data, platform: false, expiresAt };
  };
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
