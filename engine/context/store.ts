import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { contextKey, type Storage } from '../storage/index.ts';
import { type DocumentKind, type Entry, encodeDocument } from './document.ts';
import { citedSources } from './evidence.ts';

/** A document as `app.context_promote` takes it. */
export type StoredDocument = Readonly<{
  kind: DocumentKind;
  path: string;
  storageKey: string;
  sizeBytes: number;
  sha256: string;
  sourceIds: string[];
}>;

/**
 * Stores the file of a document before a promotion names it. One that no promotion names in the end is removed by the
 * clean-up a day later.
 * @throws DocumentError when it is too large
 */
export async function storeDocument(
  storage: Storage,
  organizationId: string,
  document: Readonly<{ kind: DocumentKind; path: string; entries: readonly Entry[] }>,
  signal?: AbortSignal,
): Promise<StoredDocument> {
  const { kind, path, entries } = document;
  const bytes = encodeDocument(entries);
  const storageKey = contextKey(organizationId, 'documents');
  await storage.put(storageKey, Readable.from([bytes]), { signal });
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const sourceIds = citedSources(organizationId, entries);
  return { kind, path, storageKey, sizeBytes: bytes.length, sha256, sourceIds };
}
