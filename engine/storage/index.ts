import { fileURLToPath } from 'node:url';
import { openFileStorage } from './file_driver.ts';
import type { Storage } from './storage.ts';

export { organizationPrefix, runContextKey, runOutputKey, taskInputKey } from './keys.ts';
export { receiveFile } from './receive.ts';
export {
  type GetOptions,
  type ListedObject,
  type PutOptions,
  type Storage,
  StorageMissingError,
  StorageTooLargeError,
  type StoredObject,
} from './storage.ts';

/** Opens the storage that `STORAGE_URL` names. Nothing is touched before the first call. @throws RangeError */
export function openStorage(url: string): Storage {
  const parsed = new URL(url);
  if (parsed.protocol === 'file:') return openFileStorage(fileURLToPath(parsed));
  throw new RangeError(`STORAGE_URL: no storage driver for ${parsed.protocol}`);
}
