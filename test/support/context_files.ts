// Files of the context as tests work with them: stored for real, promoted and recorded by the transitions.
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { type Entry, entrySchema, storeDocument } from '../../engine/context/index.ts';
import { contextKey, type Storage } from '../../engine/storage/index.ts';
import { insertSource, promote, type Source } from './context_fixtures.ts';
import type { TestOrganization } from './fixtures.ts';
import type { JsonObject, Sql } from './transitions.ts';

export function entry(key: string, fields: Partial<Entry> = {}): Entry {
  return entrySchema.parse({ key, ...fields });
}

type File = Readonly<{ kind?: 'facts' | 'strategy' | 'processes' | 'glossary' | 'notes'; entries?: readonly Entry[] }>;

/** Stores these documents and publishes them; their storage keys by path. */
export async function publishDocuments(
  sql: Sql,
  storage: Storage,
  org: TestOrganization,
  files: Readonly<Record<string, File>>,
  fields: Readonly<{ scope?: string; base?: number }> = {},
): Promise<Record<string, string>> {
  const documents = await Promise.all(
    Object.entries(files).map(([path, { kind = 'facts', entries = [] }]) =>
      storeDocument(storage, org.organizationId, { kind, path, entries }),
    ),
  );
  await promote(sql.api, org, { ...fields, documents });
  return Object.fromEntries(documents.map(({ path, storageKey }) => [path, storageKey]));
}

/** A source whose bytes are stored. */
export async function storeSource(
  sql: Sql,
  storage: Storage,
  org: TestOrganization,
  content: string | Uint8Array,
  fields: JsonObject = {},
): Promise<Source> {
  const storageKey = contextKey(org.organizationId, 'sources');
  const { size, sha256 } = await storage.put(storageKey, Readable.from([Buffer.from(content)]));
  return insertSource(sql, org, { storageKey, sizeBytes: size, sha256, id: randomUUID(), ...fields });
}

/** Other bytes where an object lay, as somebody at the disk would leave them. */
export async function spoil(storage: Storage, key: string, content: string | Uint8Array): Promise<void> {
  await storage.put(key, Readable.from([Buffer.from(content)]));
}
