import { z } from 'zod';
import type { DeploymentClient } from '../integration_settings.ts';
import type { DiscoveredOAuth2, OAuth2, Provider } from '../providers/index.ts';
import type { OAuthClient, OAuthServer } from '../providers/oauth/index.ts';
import type { Integrations } from './integrations.ts';
import { notReady } from './problems.ts';

/** An authorization server, and who this deployment is to it. */
export type Authorization = Readonly<{
  server: OAuthServer;
  client: OAuthClient;
  /** The server that the tokens are for, where one says so. */
  resource: string | undefined;
}>;

const endpoint = z.string().max(2_000);

/** What was found out about a server, as it is kept with the tokens that it gave: they are exchanged there and nowhere else. */
const keptSchema = z.object({
  metadata: z.object({
    issuer: endpoint,
    authorization_endpoint: endpoint,
    token_endpoint: endpoint,
    revocation_endpoint: endpoint.exactOptional(),
    authorization_response_iss_parameter_supported: z.boolean().exactOptional(),
    code_challenge_methods_supported: z.array(z.string()).exactOptional(),
  }),
  resource: z.string(),
  client: z.object({ id: z.string(), secret: z.string().nullable(), authentication: z.enum(['basic', 'post']) }),
  /** Where the client may send browsers back to. */
  redirectUri: z.string().exactOptional(),
});

export const isDiscovered = (oauth2: OAuth2 | DiscoveredOAuth2): oauth2 is DiscoveredOAuth2 => 'discover' in oauth2;

/** As text, for a field of the connection; undefined where the provider says it all by itself. */
export function keptAuthorization(
  provider: Provider,
  authorization: Authorization,
  redirectUri: string,
): string | undefined {
  if (provider.oauth2 === undefined || !isDiscovered(provider.oauth2)) return undefined;
  const { server, client, resource } = authorization;
  // PKCE was seen to when it was found: the list of a stranger may be long.
  const metadata = { ...server.metadata, code_challenge_methods_supported: ['S256'] };
  return JSON.stringify(
    keptSchema.parse({
      metadata,
      resource,
      client: { id: client.id, secret: client.secret ?? null, authentication: client.authentication },
      redirectUri,
    }),
  );
}

/** From the text that was kept. */
export function openAuthorization(
  oauth2: DiscoveredOAuth2,
  kept: string,
): Authorization & Readonly<{ redirectUri: string | undefined }> {
  const { metadata, resource, client, redirectUri } = keptSchema.parse(JSON.parse(kept));
  const { id, secret, authentication } = client;
  return {
    server: { metadata, site: oauth2.site },
    client: { id, secret: secret ?? undefined, authentication },
    resource,
    redirectUri,
  };
}

/** The client of this deployment that a provider takes. */
export function deploymentClient(
  { settings }: Pick<Integrations, 'settings'>,
  provider: Provider,
): DeploymentClient | undefined {
  return provider.deploymentClient === undefined ? undefined : settings.oauthClients[provider.deploymentClient];
}

const settingNames = { google: 'GOOGLE_CLIENT_ID', github: 'GITHUB_CLIENT_ID', xAds: 'X_ADS_CONSUMER_KEY' } as const;

/** @throws Problem 409 where the deployment has none, and the provider takes one */
export function requireDeploymentClient(
  integrations: Pick<Integrations, 'settings'>,
  provider: Provider,
): DeploymentClient {
  const client = deploymentClient(integrations, provider);
  if (client) return client;
  const name = provider.deploymentClient ? settingNames[provider.deploymentClient] : 'deployment';
  throw notReady(name, 'deployment_setting', 'is not set, so that nothing of this provider can be authorized');
}

/** Of a provider whose authorization server is known. @throws Problem 409 */
export function knownAuthorization(
  integrations: Pick<Integrations, 'settings'>,
  provider: Provider,
  oauth2: OAuth2,
): Authorization {
  const { id, secret } = requireDeploymentClient(integrations, provider);
  return {
    server: oauth2.server,
    client: { id, secret, authentication: oauth2.authentication },
    resource: undefined,
  };
}
