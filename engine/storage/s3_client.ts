import { S3Client } from '@aws-sdk/client-s3';
import { storeError } from './s3_errors.ts';
import type { S3Credentials, S3Location } from './s3_location.ts';

const CONNECT_MS = 5_000;
/** For a response, with repetitions; a part of 5 MiB takes a slow line a while. */
const RESPONSE_MS = 60_000;
/** A slow download keeps a connection: uploads must not wait for one to end. */
const CONNECTIONS = 512;

type AskOptions = Readonly<{ signal?: AbortSignal | undefined; withinMs?: number }>;

/** Makes one call of the object store: `call` hands the options on to the client. */
export type AskS3 = <T>(
  call: (client: S3Client, options: { abortSignal: AbortSignal }) => Promise<T>,
  options?: AskOptions,
) => Promise<T>;

function identity({ accessKeyId, secretAccessKey, sessionToken }: S3Credentials) {
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

function openClient({ region, endpoint, pathStyle, credentials }: S3Location): S3Client {
  return new S3Client({
    region,
    forcePathStyle: pathStyle,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials ? { credentials: identity(credentials) } : {}),
    // Checksums in trailers are refused by other stores than AWS. The signature covers the bytes of every part.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // It would cost a connection of its own for each part.
    expectContinueHeader: false,
    maxAttempts: 3,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      httpAgent: { maxSockets: CONNECTIONS },
      httpsAgent: { maxSockets: CONNECTIONS },
    },
  });
}

/**
 * The object store of `location`; nothing is sent before the first call. A call ends with the signal's reason, or with
 * what `storeError` makes of its failure. The time limit is for the response, not for the body that follows it.
 */
export function openS3(location: S3Location): AskS3 {
  const client = openClient(location);
  return async (call, { signal, withinMs = RESPONSE_MS } = {}) => {
    signal?.throwIfAborted();
    const controller = new AbortController();
    const late = setTimeout(() => controller.abort(new Error(`no response within ${withinMs / 1000} s`)), withinMs);
    const abort = () => controller.abort(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    // At once, also while the client waits before it tries again.
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true });
    try {
      return await Promise.race([call(client, { abortSignal: controller.signal }), aborted]);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw storeError(controller.signal.aborted ? controller.signal.reason : error, location);
    } finally {
      clearTimeout(late);
      signal?.removeEventListener('abort', abort);
    }
  };
}
