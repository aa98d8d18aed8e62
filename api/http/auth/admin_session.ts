import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';
import type { AdminToken } from '../../../engine/admin_tokens.ts';

export const SESSION_COOKIE = 'runner_admin_session';
export const SESSION_PATH = '/internal/admin';
export const SESSION_SECONDS = 12 * 60 * 60;

/**
 * What the explorer's cookie holds: when it ends, something random, and a signature by a key made of the token. So the
 * token itself is in no cookie, a session ends with its time or when its token is taken out of ADMIN_TOKENS, and no
 * process has to remember it.
 */
function signature(token: string, payload: string): Buffer {
  const key = createHmac('sha256', token).update('business-runner admin session').digest();
  return createHmac('sha256', key).update(payload).digest();
}

export function makeSession(token: string, now: number = Date.now()): string {
  const payload = `${Math.floor(now / 1000) + SESSION_SECONDS}.${randomBytes(12).toString('base64url')}`;
  return `${payload}.${signature(token, payload).toString('base64url')}`;
}

const FORMAT = /^((\d{1,12})\.[\w-]{16})\.([\w-]{43})$/;

/** The token that signed a session which is not over; all are tried, so that the time does not tell which one. */
export function sessionOwner(
  tokens: readonly AdminToken[],
  session: string,
  now: number = Date.now(),
): AdminToken | undefined {
  const [, payload = '', until = '0', signed = ''] = FORMAT.exec(session) ?? [];
  const given = Buffer.from(signed, 'base64url');
  let owner: AdminToken | undefined;
  for (const one of tokens) {
    const expected = signature(one.token, payload);
    if (given.length === expected.length && timingSafeEqual(given, expected)) owner = one;
  }
  return Number(until) * 1000 > now ? owner : undefined;
}

/** The value of the session's cookie; undefined when there is none. */
export function sessionCookie(req: Request): string | undefined {
  for (const part of (req.get('cookie') ?? '').split(';')) {
    const [name, value] = part.trim().split('=', 2);
    if (name === SESSION_COOKIE) return value;
  }
  return undefined;
}

/** True where a browser says that one of our own pages sends the request: a cookie goes along with others' as well. */
export function isSameOrigin(req: Request): boolean {
  const site = req.get('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin') return false;
  const origin = req.get('origin');
  if (origin === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host === (req.get('host') ?? '').toLowerCase();
}

/** True where the client came by https, to us or to the proxy in front. */
function isSecure(req: Request): boolean {
  return req.secure || /^https\b/i.test(req.get('x-forwarded-proto') ?? '');
}

/** The `Set-Cookie` header; without a session it ends the one that is there. */
export function setSessionCookie(req: Request, session: string | undefined): string {
  return [
    `${SESSION_COOKIE}=${session ?? ''}`,
    `Path=${SESSION_PATH}`,
    `Max-Age=${session === undefined ? 0 : SESSION_SECONDS}`,
    'HttpOnly',
    'SameSite=Strict',
    ...(isSecure(req) ? ['Secure'] : []),
  ].join('; ');
}
