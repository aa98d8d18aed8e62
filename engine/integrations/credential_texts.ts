import { withoutTexts, writtenForms } from '../secret_values.ts';
import { isDiscovered, openAuthorization } from './authorization.ts';
import type { Stored } from './stored.ts';

// A provider may repeat what it was called with, and no one who reads its response is to have that (docs/interface.md 4.14).

/** Fields of credentials that are no secrets, so that they stay readable in what a provider responds with. Any other one is hidden. */
const SHOWN = new Set([
  ...['kind', 'host', 'port', 'srv', 'tls', 'username', 'authSource', 'scopes', 'expiresAt'],
  ...['userId', 'screenName'],
]);

/** The secret texts of a credential. */
export function credentialTexts(credential: unknown): readonly string[] {
  if (typeof credential !== 'object' || credential === null) return [];
  return Object.entries(credential).flatMap(([name, value]) =>
    typeof value === 'string' && value !== '' && !SHOWN.has(name) ? [value] : [],
  );
}

/** All that a stored connection keeps sealed and that is sent somewhere, and the secret of the deployment's client. */
export function storedTexts(
  { provider, fields }: Pick<Stored, 'provider' | 'fields'>,
  deploymentSecret: string | undefined,
): readonly string[] {
  const kept = fields.get('authorization');
  const { oauth2 } = provider;
  const registered =
    kept === undefined || oauth2 === undefined || !isDiscovered(oauth2)
      ? undefined
      : openAuthorization(oauth2, kept).client.secret;
  const tokens = [fields.get('access_token'), fields.get('refresh_token'), registered, deploymentSecret];
  const credential = fields.get('credential');
  return [
    ...tokens.flatMap((text) => text || []),
    ...(credential === undefined ? [] : credentialTexts(JSON.parse(credential))),
  ];
}

/** What a provider responded with, without the credential that it was called with, however it repeats it. */
export function withoutCredential<T>(value: T, texts: readonly string[]): T {
  return withoutTexts(value, texts.flatMap(writtenForms), { evenNames: true }) as T;
}
