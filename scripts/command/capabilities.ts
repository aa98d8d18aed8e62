import { z } from 'zod';
import { OwnerApiError } from '../owner_call.ts';
import { type OwnerApi, ownerApi } from './api.ts';
import { capabilityFile, type Kept, keptSchema } from './capability_file.ts';
import { CommandError } from './errors.ts';
import { agentStatusSchema } from './schemas.ts';

/** Beyond the longest call of a tool, so that it is the gateway that says what took too long. */
const TIMEOUT_MS = 90_000;
/** What is left of a capability has to last for a call. */
const LEAST_MS = 120_000;

const resolvedSchema = z.object({ gateway: keptSchema });

export type Kind = 'cli' | 'git';

type Place = Readonly<{
  api: OwnerApi;
  home: string;
  /** Of the run. */
  token: string;
  /** Where other calls of the same run find capabilities; undefined: nowhere. */
  folder: string | undefined;
  signal: AbortSignal;
  /** How long a call of the gateway may take. */
  timeoutMs?: number;
}>;

/** Of a call of the gateway, in place of those of the command. `timeoutMs`: with what it responds; Infinity: none. */
export type Limits = Readonly<{ signal?: AbortSignal | undefined; timeoutMs?: number | undefined }>;

function hasIssue({ cause }: CommandError, code: string): boolean {
  return cause instanceof OwnerApiError && cause.issueCode === code;
}

/** Of a capability that is over, or whose organization or connection changed. */
function isStale(error: unknown): boolean {
  if (!(error instanceof CommandError) || !(error.cause instanceof OwnerApiError)) return false;
  return error.cause.status === 401 || hasIssue(error, 'stale_epoch');
}

/**
 * The capabilities of a run for the gateway. Each is used until it ends, because a run has at most a hundred at a time; one that the
 * gateway does not take is replaced once.
 */
export function capabilities({ api, home, token, folder, signal, timeoutMs = TIMEOUT_MS }: Place) {
  const known = new Map<string, Kept>();
  const file = folder === undefined ? undefined : capabilityFile(folder, token);

  async function resolveOnce(integrationKey: string, kind: Kind): Promise<Kept> {
    const { organization } = await api.get(agentStatusSchema, `${home}/status`);
    const { authorizationEpoch } = organization;
    const body = { integrationKey, authorizationEpoch, kind };
    return (await api.post(resolvedSchema, `${home}/integrations/resolve`, body)).gateway;
  }

  function resolve(key: string, kind: Kind): Promise<Kept> {
    return resolveOnce(key, kind).catch((error: unknown) => {
      // It changed between the two calls.
      if (error instanceof CommandError && hasIssue(error, 'stale_epoch')) return resolveOnce(key, kind);
      throw error;
    });
  }

  async function renew(key: string): Promise<Kept> {
    const found = await resolve(key, 'cli');
    known.set(key, found);
    await file?.keep(key, found);
    return found;
  }

  const lasts = ({ expiresAt }: Kept) => Date.parse(expiresAt) - Date.now() > LEAST_MS;

  async function current(key: string): Promise<Kept> {
    const found = known.get(key) ?? (await file?.find(key));
    return found && lasts(found) ? found : renew(key);
  }

  const gatewayOf = ({ url, capability }: Kept, limits: Limits) =>
    ownerApi(
      { url, token: capability, as: 'gateway', timeoutMs: limits.timeoutMs ?? timeoutMs },
      limits.signal ?? signal,
    );

  return {
    /** A new one, which is not kept. @throws CommandError */
    resolve,
    /** Calls the gateway, again with another capability where it does not take the one that is known. @throws CommandError */
    async call<T>(key: string, run: (gateway: OwnerApi) => Promise<T>, limits: Limits = {}): Promise<T> {
      try {
        return await run(gatewayOf(await current(key), limits));
      } catch (error) {
        if (!isStale(error)) throw error;
        return run(gatewayOf(await renew(key), limits));
      }
    },
  };
}

export type Capabilities = ReturnType<typeof capabilities>;
