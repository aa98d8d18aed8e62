import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'oauth4webapi';
import { ProviderError, providerCode } from '../outgoing/index.ts';

/**
 * Why an authorization did not come about. `denied`: the person said no. `invalid_grant`: the code or the refresh token is
 * over, used up or revoked; of the newest refresh token it means that the connection needs its authorization again.
 * `client_refused`: the server does not accept our client. `failed`: anything else.
 */
export type OAuthReason = 'denied' | 'invalid_grant' | 'client_refused' | 'failed';

/** As with ProviderError, no text of the provider is in the message or behind it. */
export class OAuthError extends Error {
  override name = 'OAuthError';
  readonly reason: OAuthReason;
  readonly code: string | undefined;
  constructor(reason: OAuthReason, message: string, code?: string) {
    super(message);
    this.reason = reason;
    this.code = code;
  }
}

/** What a code of a server means. */
export type OAuthCodes = ReadonlyMap<string, OAuthReason>;

const standard: OAuthCodes = new Map([
  ['access_denied', 'denied'],
  ['consent_required', 'denied'],
  ['invalid_grant', 'invalid_grant'],
  ['invalid_client', 'client_refused'],
  ['unauthorized_client', 'client_refused'],
]);

const messages: Readonly<Record<OAuthReason, string>> = {
  denied: 'The authorization was denied.',
  invalid_grant: 'The provider no longer accepts the authorization.',
  client_refused: 'The provider does not accept our OAuth client.',
  failed: 'The authorization server responds in a way that is not the documented one.',
};

/** For a response that the library accepts and we cannot store. `code` is our own. */
export const badResponse = (code: string): OAuthError => new OAuthError('failed', messages.failed, code);

function byCode(code: string, own: OAuthCodes | undefined, sent: readonly string[]): OAuthError {
  const reason = own?.get(code) ?? standard.get(code) ?? 'failed';
  return new OAuthError(reason, messages[reason], providerCode(code, sent));
}

/**
 * What the library throws, in our words. Its own errors carry the whole response, and so do not go further.
 * @param own codes of this server that are none of the standard's
 * @param sent what of the request no code may repeat
 */
export function oauthFailure(error: unknown, own?: OAuthCodes, sent: readonly string[] = []): unknown {
  if (error instanceof ProviderError || error instanceof OAuthError) return error;
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError)
    return byCode(error.error, own, sent);
  if (error instanceof WWWAuthenticateChallengeError) {
    return byCode(
      error.cause.find(({ parameters }) => parameters.error)?.parameters.error ?? 'invalid_client',
      own,
      sent,
    );
  }
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === 'string' && code.startsWith('OAUTH_') ? new OAuthError('failed', messages.failed) : error;
}
