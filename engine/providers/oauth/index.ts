export { type OAuth2Credential, oauth2Credential, refreshedCredential } from './credential.ts';
export { type OAuthCodes, OAuthError, type OAuthReason } from './errors.ts';
export {
  type AuthorizationRequest,
  beginAuthorization,
  finishAuthorization,
  type OAuthClient,
  type OAuthServer,
  type PendingAuthorization,
  refreshTokens,
  revokeToken,
  type Tokens,
} from './flow.ts';
