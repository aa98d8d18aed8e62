import type { z } from 'zod';
import type { IntegrationConfig } from '../integration_settings.ts';
import type {
  Access,
  AccessMode,
  ConnectionKind,
  Discovery,
  Effect,
  ProviderContext,
  StoredTool,
  Tool,
} from './context.ts';
import type { CollectCall, Dataset, DatasetAdapter, DiscoverCall } from './dataset.ts';
import type { OAuthClient, OAuthServer, Tokens } from './oauth/index.ts';
import { type Bucket, ProviderError, type Site } from './outgoing/index.ts';
import type { OwnTool, ReadCall, ToolRuntime, WriteCall } from './tool.ts';

/** A part of a provider that a person chooses when they connect it, with the scopes that it takes. */
export type Service = Readonly<{ key: string; title: string; scopes: Readonly<Record<Effect, readonly string[]>> }>;

/** The account behind a credential. */
export type Account = Readonly<{
  /** The provider's own id of it: two credentials of one subject are of one account. Never shown. */
  subject: string;
  /** For people, who tell accounts apart by it: a public name, or what is masked. In no log. */
  label: string;
  /** Undefined where the provider has no scopes, or does not name them. */
  grantedScopes?: readonly string[] | undefined;
}>;

/** A setting that the provider or the connection does not bear out. */
export type SettingIssue = Readonly<{ path: readonly (string | number)[]; message: string }>;

export type Settings<S extends z.ZodType = z.ZodType> = Readonly<{
  schema: S;
  /** Without them the connection does nothing. */
  required: boolean;
  /** They say what the credential is for, so they come before it. */
  beforeConnection?: boolean;
  /** Of those: the field of the address that the credential is sent to. Another address is another server, and ends the connection. */
  address?: string;
}>;

/** What a person may ask for while choosing settings (docs/interface.md, 4.10); its items are those of `discover`. */
export type LookUp = 'properties' | 'stores' | 'resources';

/** How a provider is authorized with OAuth 2, where its authorization server is one and known. */
export type OAuth2 = Readonly<{
  /** How the client shows that it is who it says. */
  authentication: OAuthClient['authentication'];
  server: OAuthServer;
  /** Asks for an ID token: its subject is the account. */
  openId: boolean;
  /** What its authorization takes beside the standard's parameters. */
  parameters: Readonly<Record<string, string>>;
  /** Connections of all providers with the same `grant` and subject end together when one is revoked. */
  grant: string;
  /** Without a refresh token, a stored one of the same subject or none at all makes the connection fail. */
  needsRefreshToken: boolean;
  scopes(services: readonly string[], accessMode: AccessMode): readonly string[];
  /** The scopes of a response that names none: null where those asked for are granted. */
  grantedScopes(tokens: Tokens): readonly string[] | null;
  /** Ends the whole grant at the provider. @returns false where it does not know the token. @throws ProviderError */
  revoke(context: ProviderContext, client: OAuthClient, token: string): Promise<boolean>;
}>;

/** How a server wants to be authorized whose authorization server is any. */
export type DiscoveredAuthorization = Readonly<{
  server: OAuthServer;
  /** The protected resource, as the server writes it: sent byte by byte. */
  resource: string;
  scopes: readonly string[];
}>;

export type ConnectedScopes = Readonly<{
  issuer: string;
  accessToken: string | null;
  scopes: readonly string[];
  /** Those that the server named when it refused calls. */
  missing: readonly string[];
}>;

/** How a provider is authorized with OAuth 2 where its authorization server is found at the address of the settings. */
export type DiscoveredOAuth2 = Readonly<{
  /** Where requests to its servers may go. */
  site: Site;
  /**
   * `connected`: what the connection has now, of the server that calls itself `issuer`; `accessToken` is null where it is not taken
   * any more. At the same server the scopes are those that it asks for, or named in a refusal, and those that were granted.
   * @returns null where the server asks for no authorization
   * @throws ProviderError
   */
  discover(
    context: ProviderContext,
    options: Readonly<{
      settings: unknown;
      connected?: ConnectedScopes | undefined;
    }>,
  ): Promise<DiscoveredAuthorization | null>;
  /** The client that the server knows this deployment by; `isNew`: it was registered just now. @throws OAuthError or ProviderError */
  client(
    context: ProviderContext,
    authorization: DiscoveredAuthorization,
    options: Readonly<{
      configured: IntegrationConfig['mcpClient'];
      /** Of this issuer, from an earlier registration. */
      registered: OAuthClient | undefined;
      redirectUri: string;
    }>,
  ): Promise<Readonly<{ client: OAuthClient; isNew: boolean }>>;
}>;

/** The three steps of OAuth 1.0a. The secret of the request token is kept for the callback, and used once. */
export type OAuth1 = Readonly<{
  /** Where it asks, and where the browser goes. */
  addresses: readonly string[];
  /** @throws ProviderError */
  begin(
    context: ProviderContext,
    options: Readonly<{ callbackUrl: string; accessMode: AccessMode }>,
  ): Promise<Readonly<{ token: string; secret: string; url: URL }>>;
  /** The credential to store, and whose it is. @throws ProviderError */
  finish(
    context: ProviderContext,
    pending: Readonly<{ token: string; secret: string; verifier: string }>,
  ): Promise<Readonly<{ credential: unknown; account: Account }>>;
  /** Ends the token at the provider. @throws ProviderError */
  revoke(context: ProviderContext, credential: unknown): Promise<void>;
}>;

/** A repository as git reaches it. */
export type GitRemote = Readonly<{
  /** `owner/name`, as the settings write it. */
  name: string;
  /** https, at an origin of the site, without credentials. */
  url: string;
  /** The header that the connection's credential makes. */
  authorization: string;
}>;

/** How the repositories of a provider are reached with git over HTTP. */
export type GitHost<C = unknown, S = unknown> = Readonly<{
  site: Site;
  /** Undefined: the settings do not name the repository. */
  remote(access: Access<C, S>, owner: string, repository: string): GitRemote | undefined;
}>;

export type Provider = Readonly<{
  /** As in paths: lower case, hyphens. */
  key: string;
  title: string;
  connections: readonly ConnectionKind[];
  /** Of those with `oauth2`. */
  oauth2?: OAuth2 | DiscoveredOAuth2;
  oauth1?: OAuth1;
  /** Its own servers; undefined: settings or a credential name them. */
  origins?: readonly string[];
  /** The client of this deployment that its authorizations need. */
  deploymentClient?: keyof IntegrationConfig['oauthClients'];
  services: readonly Service[];
  /** Null: none. Their `kind` is the key with underscores. */
  settings: Settings | null;
  /** Credentials of all its kinds, as they are stored; a person sends those without tokens of OAuth. */
  credential: z.ZodType;
  /** Without those of a server's own. */
  tools: readonly Tool[];
  /** Its tools are its server's own, and found by `discover`: those of another server are others. */
  hasServerTools: boolean;
  /** What does a tool of this provider; undefined: it has none of this key and effect. */
  runtime(tool: StoredTool): ToolRuntime | undefined;
  datasets: readonly Dataset[];
  lookUp?: LookUp;
  /** The gateway of git reaches its repositories. */
  git?: GitHost;
  /**
   * Asks the provider who the credential belongs to. Stores nothing.
   * @throws ProviderError: `rejected` where the credential is not accepted
   */
  verify(context: ProviderContext, access: Access): Promise<Account>;
  /** What the credential reaches. Stores nothing. @throws ProviderError */
  discover(context: ProviderContext, access: Access): Promise<Discovery>;
  /** What of the settings is not among what was discovered; nothing where that is not all there is. */
  checkSettings(settings: unknown, discovery: Discovery): readonly SettingIssue[];
}>;

type Definition<C extends z.ZodType, S extends z.ZodType> = Readonly<
  Omit<
    Provider,
    | 'credential'
    | 'settings'
    | 'tools'
    | 'hasServerTools'
    | 'runtime'
    | 'datasets'
    | 'verify'
    | 'discover'
    | 'checkSettings'
    | 'git'
  > & {
    credential: C;
    settings: Settings<S> | null;
    tools: readonly (Tool | OwnTool)[];
    /** What does a tool of the server's own. */
    serverTool?(tool: StoredTool): ToolRuntime;
    verify(context: ProviderContext, access: Access<z.output<C>, z.output<S>>): Promise<Account>;
    discover(context: ProviderContext, access: Access<z.output<C>, z.output<S>>): Promise<Discovery>;
    checkSettings?(settings: z.output<S>, discovery: Discovery): readonly SettingIssue[];
    git?: GitHost<z.output<C>, z.output<S>>;
    datasets: readonly Dataset<z.output<C>, z.output<S>>[];
  }
>;

/** Whoever waits for a provider gets a response within 25 s, 2 s of them for a server that is slow to be said goodbye to. */
export const DEADLINE_MS = 22_000;

/** All requests of `run` together. @throws ProviderError `unavailable` where they take longer; the signal's reason */
export async function inTime<T>(
  provider: string,
  { signal: given, deadlineMs = DEADLINE_MS }: Pick<ProviderContext, 'signal' | 'deadlineMs'>,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(deadlineMs);
  const signal = given === undefined ? late : AbortSignal.any([given, late]);
  try {
    return await run(signal);
  } catch (error) {
    given?.throwIfAborted();
    if (late.aborted) throw new ProviderError(provider, 'unavailable', 'The provider did not respond in time.');
    throw error;
  }
}

export type {
  Access,
  AccessMode,
  ConnectionKind,
  Discovery,
  Effect,
  ProviderContext,
  Risk,
  StoredTool,
  Tool,
} from './context.ts';
export type { Dataset, DatasetAdapter } from './dataset.ts';
export { inputSchema } from './tool.ts';

/** A provider whose functions get what its schemas read. A credential or settings of another shape are our own error. */
export function defineProvider<C extends z.ZodType, S extends z.ZodType = z.ZodNever>(
  definition: Definition<C, S>,
): Provider {
  const { key, credential, settings, git, datasets, ...rest } = definition;
  const read = (access: Access): Access<z.output<C>, z.output<S>> => ({
    credential: credential.parse(access.credential),
    settings: access.settings === null || settings === null ? null : settings.schema.parse(access.settings),
  });
  const readSettings = (given: unknown) => (given === null || settings === null ? null : settings.schema.parse(given));
  /** Of what it is called with, the credential and the settings are read before it gets them. */
  function reading(runtime: ToolRuntime): ToolRuntime {
    const parse: ToolRuntime['parse'] = (args, given) => runtime.parse(args, readSettings(given));
    const typed = <T extends ReadCall | WriteCall>(call: T): T => ({ ...call, access: read(call.access) });
    if (runtime.effect === 'read') return { ...runtime, parse, read: async (call) => runtime.read(typed(call)) };
    const { lookUp } = runtime;
    return {
      ...runtime,
      parse,
      summary: (proposed) => runtime.summary({ ...proposed, settings: readSettings(proposed.settings) }),
      riskOf: (args, given) => runtime.riskOf?.(args, readSettings(given)) ?? 'low',
      execute: async (call) => runtime.execute(typed(call)),
      ...(lookUp ? { lookUp: async (call: WriteCall) => lookUp(typed(call)) } : {}),
    };
  }
  const typedCall = <T extends DiscoverCall>(call: T) => ({ ...call, access: read(call.access) });
  function collecting(adapter: DatasetAdapter<z.output<C>, z.output<S>>): DatasetAdapter {
    return {
      ...adapter,
      discover: async (call) =>
        inTime(key, call.context, (signal) =>
          adapter.discover(typedCall({ ...call, context: { ...call.context, signal } })),
        ),
      collect: (call: CollectCall) => adapter.collect(typedCall(call)),
    };
  }
  const runtimes = new Map(
    definition.tools.flatMap((tool) => ('runtime' in tool ? [[tool.key, reading(tool.runtime)] as const] : [])),
  );
  return {
    ...rest,
    key,
    credential,
    settings,
    datasets: datasets.map(({ adapter, ...dataset }) =>
      adapter ? { ...dataset, adapter: collecting(adapter) } : dataset,
    ),
    hasServerTools: definition.serverTool !== undefined,
    ...(git && {
      git: {
        ...git,
        remote: (access, owner, repository) => git.remote(read(access), owner, repository),
      },
    }),
    runtime(tool) {
      const own = runtimes.get(tool.key) ?? (definition.serverTool && reading(definition.serverTool(tool)));
      return own?.effect === tool.effect ? own : undefined;
    },
    verify: (context, access) =>
      inTime(key, context, async (signal) => definition.verify({ ...context, signal }, read(access))),
    discover: (context, access) =>
      inTime(key, context, async (signal) => definition.discover({ ...context, signal }, read(access))),
    checkSettings(given, discovery) {
      if (settings === null || discovery.truncated) return [];
      return definition.checkSettings?.(settings.schema.parse(given), discovery) ?? [];
    },
  };
}

/**
 * One bucket of the connection's account at the provider. Calls of other limits have another one: counted at the pace of the slower
 * ones, the faster would wait for them.
 */
export function accountBucket(
  provider: string,
  { account }: ProviderContext,
  capacity: number,
  perSecond: number,
): Bucket {
  return { key: `${provider}:account:${account}:${capacity}/${perSecond}`, capacity, perSecond };
}

/** The issues of choices that are not among those there are. */
export function unknownChoices(
  field: string,
  chosen: readonly string[],
  known: ReadonlySet<string>,
  what: string,
): readonly SettingIssue[] {
  return chosen.flatMap((id, index) => {
    return known.has(id) ? [] : [{ path: [field, index], message: `The connection reaches no such ${what}.` }];
  });
}
