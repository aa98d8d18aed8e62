import { z } from 'zod';
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
