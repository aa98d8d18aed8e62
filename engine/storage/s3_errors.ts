import type { S3Location } from './s3_location.ts';
import { StorageFullError, StorageUnavailableError } from './storage.ts';

export const NO_BUCKET = 'there is no such bucket';

/** Status and code of a response of the object store; both undefined when there was none. */
export function responseOf(error: unknown): { status: number | undefined; code: string | undefined } {
  if (!(error instanceof Error)) return { status: undefined, code: undefined };
  const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  return { status, code: status === undefined ? undefined : error.name };
}

/** What to say of an error that came without a response: refused, reset, no such host, too late. */
function silence(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return [code, error.message].filter((part) => part !== undefined && part !== '').join(' ');
}

function reasonOf(error: unknown, location: S3Location): string | undefined {
  const { status, code } = responseOf(error);
  if (isFull(error)) return `it has no room (${status} ${code})`;
  if (error instanceof Error && error.name === 'CredentialsProviderError') {
    return 'there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
  }
  if (status === undefined) return `it cannot be reached: ${silence(error)}`;
  if (code === 'NoSuchBucket') return NO_BUCKET;
  if (status === 301 || code === 'PermanentRedirect' || code === 'AuthorizationHeaderMalformed') {
    return `the bucket lies in another region than ${location.region}: set AWS_REGION`;
  }
  // Also expired and malformed tokens, for which some send 400.
  if (status === 401 || status === 403 || /^(Expired|Invalid)Token|^Token/.test(code ?? '')) {
    return `the credentials are refused (${status} ${code}): see AWS_ACCESS_KEY_ID and what its owner may do`;
  }
  if (status >= 500 || status === 429) return `it responds with ${status} ${code}`;
  return undefined;
}

/** What stores call a quota that is used up (Ceph, MinIO), or a disk that is full; AWS knows neither. */
function isFull(error: unknown): boolean {
  const { status, code } = responseOf(error);
  return status === 507 || ['QuotaExceeded', 'XMinioStorageFull', 'InsufficientStorage'].includes(code ?? '');
}

/** The store of `location` cannot be used, for `reason`. */
export function storeUnavailable(location: S3Location, reason: string, cause: unknown): StorageUnavailableError {
  const place = location.endpoint === undefined ? location.region : new URL(location.endpoint).host;
  const kind = isFull(cause) ? StorageFullError : StorageUnavailableError;
  return new kind(`the bucket ${location.bucket} at ${place}: ${reason}`, { cause });
}

/**
 * What a failed call of the object store means to us: StorageUnavailableError, or the error itself where it is our own
 * fault (a request that the store calls malformed) or an ordinary response (there is no such object).
 */
export function storeError(error: unknown, location: S3Location): unknown {
  if (error instanceof StorageUnavailableError) return error;
  const reason = reasonOf(error, location);
  return reason === undefined ? error : storeUnavailable(location, reason, error);
}
