import { fileURLToPath } from 'node:url';
import { openFileStorage } from './file_driver.ts';
import { type S3Location, type S3Settings, s3Location } from './s3_location.ts';
import type { Storage } from './storage.ts';

export {
  type ContextFile,
  chatAttachmentKey,
  chatPrefix,
  contextKey,
  contextKeyTime,
  contextPrefix,
  type InvocationObject,
  insightSegmentKey,
  insightSegmentTime,
  insightsPrefix,
  invocationKey,
  invocationKeyTime,
  invocationsPrefix,
  organizationPrefix,
  runContextKey,
  runOutputKey,
  taskInputKey,
} from './keys.ts';
export { receiveFile } from './receive.ts';
export type { S3Settings } from './s3_location.ts';
export {
  type DeclaredObject,
  type GetOptions,
  type ListedObject,
  type PresignedPut,
  type PutOptions,
  type Storage,
  StorageFullError,
  StorageMissingError,
  StorageTooLargeError,
  StorageUnavailableError,
  type StoredObject,
} from './storage.ts';

export {
  checkVerified,
  openVerified,
  type RecordedBytes,
  readVerified,
  StorageBrokenError,
  verifying,
} from './verified.ts';

/** The driver with its SDK, which is large, is loaded where it is used alone. */
function openS3Lazily(location: S3Location): Storage {
  const driver = import('./s3_driver.ts').then(({ openS3Storage }) => openS3Storage(location));
  // Each call reports the failure.
  driver.catch(() => {});
  return {
    put: async (...args) => (await driver).put(...args),
    get: async (...args) => (await driver).get(...args),
    stat: async (...args) => (await driver).stat(...args),
    delete: async (...args) => (await driver).delete(...args),
    deletePrefix: async (...args) => (await driver).deletePrefix(...args),
    list: async (...args) => (await driver).list(...args),
    removeAbandoned: async (...args) => (await driver).removeAbandoned(...args),
    presignPut: async (...args) => (await driver).presignPut(...args),
    check: async () => (await driver).check(),
  };
}

/**
 * Opens the storage that `STORAGE_URL` names; `settings` are those of AWS. Nothing is touched before the first call.
 * @throws RangeError with one line that names the setting
 */
export function openStorage(url: string, settings: S3Settings = {}): Storage {
  const parsed = new URL(url);
  if (parsed.protocol === 'file:') return openFileStorage(fileURLToPath(parsed));
  if (parsed.protocol === 's3:') return openS3Lazily(s3Location(url, settings));
  throw new RangeError(`STORAGE_URL: no storage driver for ${parsed.protocol}`);
}

/** Where the files lie, for the person who runs it: a path, or the bucket and who serves it. */
export function storagePlace(url: string, settings: S3Settings = {}): string {
  if (new URL(url).protocol === 'file:') return fileURLToPath(url);
  const { bucket, prefix, endpoint, region } = s3Location(url, settings);
  return `s3://${bucket}/${prefix} at ${endpoint === undefined ? `AWS, ${region}` : new URL(endpoint).host}`;
}
