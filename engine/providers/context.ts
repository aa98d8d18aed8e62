import type { DeploymentClient } from '../integration_settings.ts';
import type { ACCESS_MODES, CONNECTION_KINDS, TOOL_EFFECTS, TOOL_RISKS } from '../integration_states.ts';
import type { ProviderClient } from './outgoing/index.ts';

export type ConnectionKind = (typeof CONNECTION_KINDS)[number];
export type AccessMode = (typeof ACCESS_MODES)[number];
export type Effect = (typeof TOOL_EFFECTS)[number];
/** `low`: reads, and writes that nobody outside sees. `external`: others see it. `high`: money, or hard to take back. */
export type Risk = (typeof TOOL_RISKS)[number];

/** A tool as owners see and select it. */
export type Tool = Readonly<{
  key: string;
  title: string;
  description: string;
  effect: Effect;
  risk: Risk;
  /** One of them is enough: a wider scope covers a narrower one. Empty: any connection. */
  scopes: readonly string[];
  /** JSON schema of its input. */
  inputSchema: Readonly<Record<string, unknown>>;
  /** Of a server's own tool: the whole of it as it was offered. What an owner enabled holds for this alone. */
  digest?: string;
}>;

/** A tool as it is stored with an integration. The effect of a server's own is what the owner says. */
export type StoredTool = Readonly<{
  key: string;
  effect: Effect;
  inputSchema: Tool['inputSchema'];
  /** As its owner enabled it: a server's own is not called while the server offers another one, nor without it. */
  digest?: string | undefined;
}>;

/** What a call to a provider is made with. */
export type ProviderContext = Readonly<{
  client: ProviderClient;
  /** Names the connection in budgets: the account's subject where it is known, else the integration. No secret. */
  account: string;
  /** That of `Provider.deploymentClient`; undefined: the settings have none. */
  deploymentClient?: DeploymentClient | undefined;
  signal?: AbortSignal | undefined;
  /** Of a verification or a discovery, all of its requests together (default 22 s). */
  deadlineMs?: number;
}>;

export type Access<C = unknown, S = unknown> = Readonly<{
  /** As it was stored, or as a person sent it. */
  credential: C;
  /** As they are stored, or as they are about to be; null: none yet. */
  settings: S | null;
}>;

/** What a connection reaches, as its provider tells. */
export type Discovery = Readonly<{
  /** What a person may choose from, for the settings. */
  items: readonly Readonly<Record<string, unknown>>[];
  /** There is more than `items` holds: what is chosen may be among the rest. */
  truncated: boolean;
  /** Every item is there, but some without all of their details. */
  partial?: boolean;
  /** Of a provider whose tools are its server's own. */
  tools?: readonly Tool[];
}>;
