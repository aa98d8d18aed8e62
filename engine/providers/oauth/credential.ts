import { z } from 'zod';
import { OAuthError } from './errors.ts';
import type { Tokens } from './flow.ts';

/** Tokens of OAuth 2 as they are stored, encrypted. No person sends them. */
export const oauth2Credential = z.strictObject({
  kind: z.literal('oauth2'),
  accessToken: z.string().min(1),
  /** Null: it does not end. */
  expiresAt: z.iso.datetime().nullable(),
  refreshToken: z.string().min(1).nullable(),
  scopes: z.array(z.string()),
});

export type OAuth2Credential = z.output<typeof oauth2Credential>;

type Granted = Readonly<{
  /** The verified account of the new tokens. */
  subject: string;
  /** The scopes that were asked for: those of a server that names none. */
  requested: readonly string[];
  needsRefreshToken: boolean;
  /** What the connection had until now. */
  stored: Readonly<{ subject: string; credential: OAuth2Credential }> | undefined;
}>;

/**
 * What is stored after an authorization. A server that gives no refresh token now may have given one before: that is used again
 * for the same account, and for no other.
 * @throws OAuthError where there is none, and the connection would end with its access token
 */
export function credentialOf(
  tokens: Tokens,
  { subject, requested, needsRefreshToken, stored }: Granted,
): OAuth2Credential {
  const earlier = stored?.subject === subject ? stored.credential.refreshToken : null;
  const refreshToken = tokens.refreshToken ?? earlier;
  if (refreshToken === null && needsRefreshToken) {
    throw new OAuthError('failed', 'The provider gave no refresh token, so that the connection would end by itself.');
  }
  return {
    kind: 'oauth2',
    accessToken: tokens.accessToken,
    expiresAt: tokens.expiresAt?.toISOString() ?? null,
    refreshToken,
    scopes: [...(tokens.scopes ?? requested)],
  };
}

/** What is stored after a refresh: the refresh token stays where there is no new one, and so do scopes that nobody names. */
export function refreshedCredential(stored: OAuth2Credential, tokens: Tokens): OAuth2Credential {
  return {
    kind: 'oauth2',
    accessToken: tokens.accessToken,
    expiresAt: tokens.expiresAt?.toISOString() ?? null,
    refreshToken: tokens.refreshToken ?? stored.refreshToken,
    scopes: [...(tokens.scopes ?? stored.scopes)],
  };
}
