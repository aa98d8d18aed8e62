import { github } from './github/index.ts';
import { googleAnalytics } from './google-analytics/index.ts';
import { googleWorkspace } from './google-workspace/index.ts';
import { lemonSqueezy } from './lemon-squeezy/index.ts';
import { mcp } from './mcp/index.ts';
import { mongodb } from './mongodb/index.ts';
import type { Provider } from './provider.ts';

import { stripe } from './stripe/index.ts';
import { upstashRedis } from './upstash-redis/index.ts';
import { xAds } from './x-ads/index.ts';

/** All providers, by their key. Nothing else names one. */
export const providers: ReadonlyMap<string, Provider> = new Map(
  [github, googleAnalytics, googleWorkspace, lemonSqueezy, mcp, mongodb, stripe, upstashRedis, xAds].map((provider) => [
    provider.key,
    provider,
  ]),
);

export type {
  Access,
  AccessMode,
  Account,
  ConnectedScopes,
  Dataset,
  DiscoveredAuthorization,
  DiscoveredOAuth2,
  Discovery,
  Effect,
  GitHost,
  GitRemote,
  LookUp,
  OAuth1,
  OAuth2,
  Provider,
  ProviderContext,
  Risk,
  Service,
  SettingIssue,
  Tool,
} from './provider.ts';
export { accountBucket, DEADLINE_MS, inTime } from './provider.ts';
