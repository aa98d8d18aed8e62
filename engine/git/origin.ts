import type { Readable } from 'node:stream';
import { ProviderError, type ProviderStream } from '../providers/outgoing/index.ts';
import { bucketsOf, type Remote } from './remote.ts';

export type GitService = 'git-upload-pack' | 'git-receive-pack';

/** A provider that packs a large repository says nothing for a while. */
const IDLE_MS = 120_000;
const TOTAL_MS = 3_600_000;

type OriginRequest = Readonly<{
  /** The version of the protocol that the client speaks, as it says it. */
  protocol?: string | undefined;
  signal: AbortSignal;
}>;

async function open(
  remote: Remote,
  mediaType: string,
  path: string,
  request: OriginRequest & Readonly<{ body?: Readable; headers?: Readonly<Record<string, string>> }>,
): Promise<ProviderStream> {
  const { provider, context } = remote.connection;
  if (!provider.git) throw new TypeError(`${provider.key} has no repositories`);
  const { protocol, signal, body, headers } = request;
  const response = await context.client.open(provider.git.site, {
    method: body ? 'POST' : 'GET',
    url: `${remote.url}/${path}`,
    headers: {
      authorization: remote.authorization,
      accept: mediaType,
      ...(protocol === undefined ? {} : { 'git-protocol': protocol }),
      ...headers,
    },
    ...(body ? { body } : {}),
    buckets: bucketsOf(remote),
    signal,
    idleMs: IDLE_MS,
    totalMs: TOTAL_MS,
  });
  if (response.headers['content-type'] === mediaType) return response;
  response.discard();
  throw new ProviderError(provider.key, 'failed', 'The provider responds in a form that is not that of git.', {
    status: response.status,
  });
}

/** The refs that the provider offers. @throws ProviderError, or the signal's reason */
export function openAdvertisement(
  remote: Remote,
  service: GitService,
  request: OriginRequest,
): Promise<ProviderStream> {
  return open(remote, `application/x-${service}-advertisement`, `info/refs?service=${service}`, request);
}

/** What a client fetches. `encoding`: of the body, which is sent on as it comes. @throws ProviderError, or the signal's reason */
export function openUploadPack(
  remote: Remote,
  request: OriginRequest & Readonly<{ body: Readable; encoding: string | undefined }>,
): Promise<ProviderStream> {
  const { encoding, ...rest } = request;
  const headers = {
    'content-type': 'application/x-git-upload-pack-request',
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
  };
  return open(remote, 'application/x-git-upload-pack-result', 'git-upload-pack', { ...rest, headers });
}
