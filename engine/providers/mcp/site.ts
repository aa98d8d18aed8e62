import { z } from 'zod';
import { oauth2Credential } from '../oauth/index.ts';
import { ProviderError, type ReadRefusal, type Site } from '../outgoing/index.ts';
import { type Access, accountBucket, type ProviderContext } from '../provider.ts';

export const KEY = 'mcp';

/** What a token does not cover is a word of OAuth: the next authorization asks for more. */
const readRefusal: ReadRefusal = ({ status, headers }) => {
  const challenge = headers['www-authenticate'] ?? '';
  if (status !== 403 || !/\berror="?insufficient_scope\b/.test(challenge)) return {};
  const [, quoted, bare = ''] = /(?:^|[\s,])scope=(?:"([^"]*)"|([^\s,"]+))/i.exec(challenge) ?? [];
  return { reason: 'forbidden', code: 'insufficient_scope', scopes: (quoted ?? bare).split(' ') };
};

/** Servers, their metadata and their tokens may be anywhere: the guard checks each address. */
export const site: Site = { provider: KEY, origins: 'chosen', readRefusal };

/** One for each server that a connection calls: what one of them asks for says nothing of the next that the settings name. */
export const buckets = (context: ProviderContext, url: string | URL) => {
  const account = `${context.account} ${new URL(url).origin}`;
  return [accountBucket(KEY, { ...context, account }, 60, 5)];
};

export const settings = z.strictObject({
  kind: z.literal('mcp'),
  serverUrl: z
    .string()
    .max(2_000)
    // What is secret belongs into a credential, and a fragment never arrives.
    .refine((text) => {
      const url = URL.parse(text);
      if (url === null || !/^https?:$/.test(url.protocol)) return false;
      return url.username === '' && url.password === '' && url.hash === '';
    }, 'must be an https address without user, password and fragment')
    // As it is called: what else is written for it would pass by the domains that an organization blocks.
    .transform((text) => new URL(text).href.replace(/#$/, '')),
});

/** `none` is a credential here: a person says that the server is to be used without one. */
export const credential = z.discriminatedUnion('kind', [z.strictObject({ kind: z.literal('none') }), oauth2Credential]);
export type Connection = Access<z.output<typeof credential>, z.output<typeof settings>>;

/** @throws ProviderError where the settings do not name it yet */
export function serverOf({ credential: given, settings: chosen }: Connection) {
  if (chosen === null) {
    throw new ProviderError(KEY, 'refused', 'The settings name the server, and there are none yet.');
  }
  return { serverUrl: chosen.serverUrl, accessToken: given.kind === 'oauth2' ? given.accessToken : undefined };
}
