import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { sql } from 'slonik';
import { z } from 'zod';
import { call, type Queries } from '../db/call.ts';
import { scoped } from '../db/scope.ts';
import type { Json } from '../db/sql_types.ts';
import { contextKey, readVerified, type Storage, StorageBrokenError } from '../storage/index.ts';
import { type KeptPage, mediaTypeOf, type PageBytes, quotePage } from '../website/index.ts';

/** In whose name evidence is added: the attempt of the job, or who was asked in the onboarding chat. */
export type Researcher = Readonly<{ generation: number }> | Readonly<{ actor: Json }>;

const evidenceResult = z.object({ source: z.object({ id: z.string(), storage_key: z.string() }).nullable() });

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');

/** A name for the bytes that a person recognizes, from the address alone: found again it is the same. */
function fileNameOf(address: string): string {
  const { hostname, pathname } = new URL(address);
  const name = `${hostname}${pathname}`.replace(/[^a-z0-9.-]+/gi, '-').replace(/^[.-]+|(?<![.-])[.-]+$/g, '');
  return `${name.slice(0, 100) || 'page'}.html`;
}

/** The same page of the same address is one source, however often it is read; another version of it is another one. */
function dedupeKey(requestedUrl: string, digest: string): string {
  return `page:${sha256(requestedUrl)}:${digest}`;
}

/**
 * Keeps a page as evidence: its bytes as they were sent, their digest, and where they are from. A page that was kept
 * before is not kept twice, and its bytes are not stored twice for long.
 * @returns the source's id, or null when the attempt at the research is over
 * @throws Problem of the transition, StorageUnavailableError
 */
export async function keepPage(
  services: Readonly<{ db: Queries; storage: Storage }>,
  organizationId: string,
  researcher: Researcher,
  { requestedUrl, page, raw }: KeptPage,
): Promise<string | null> {
  const { db, storage } = services;
  const storageKey = contextKey(organizationId, 'sources');
  // Before the row: a crash leaves bytes without a row, which the clean-up finds, and never a row without bytes.
  const stored = await storage.put(storageKey, Readable.from([Buffer.from(raw.bytes)]));
  const source = {
    kind: 'page',
    // It was read as text already.
    status: 'ingested',
    fileName: fileNameOf(requestedUrl),
    mediaType: mediaTypeOf(raw.contentType),
    sizeBytes: stored.size,
    sha256: stored.sha256,
    storageKey,
    provenanceUrls: [...new Set([page.url, requestedUrl, ...(page.canonicalUrl === null ? [] : [page.canonicalUrl])])],
    ...quotePage(page),
    dedupeKey: dedupeKey(requestedUrl, stored.sha256),
  };
  const args = {
    organizationId,
    generation: 'generation' in researcher ? researcher.generation : null,
    source,
    actor: 'actor' in researcher ? researcher.actor : null,
  };
  const { source: kept } = await call(db, 'onboarding_evidence_add', args, evidenceResult);
  if (kept?.storage_key !== storageKey) await storage.delete(storageKey);
  return kept?.id ?? null;
}

const keptRow = z.object({
  url: z.string(),
  media_type: z.string(),
  storage_key: z.string(),
  size_bytes: z.int(),
  sha256: z.string(),
});

/**
 * What was kept of an address since a time: a job that goes on after a crash reads it here, and asks nobody.
 * Null when nothing was, or when its bytes are not whole any more.
 */
export async function recallPage(
  services: Readonly<{ db: Queries; storage: Storage }>,
  organizationId: string,
  since: string,
  requestedUrl: string,
): Promise<PageBytes | null> {
  const row = await services.db.maybeOne(
    scoped(
      organizationId,
      keptRow,
      sql.fragment`
        select s.provenance_urls ->> 0 as url, s.media_type, s.storage_key, s.size_bytes, s.sha256
        from app.context_sources s
        where s.organization_id = scope.organization_id
          and s.origin = 'research' and s.kind = 'page'
          and s.created_at >= ${since}::timestamptz
          and s.dedupe_key like ${`${dedupeKey(requestedUrl, '')}%`}
        order by s.created_at desc, s.id desc
        limit 1`,
    ),
  );
  if (!row) return null;
  try {
    const file = { key: row.storage_key, size: row.size_bytes, sha256: row.sha256 };
    return { url: row.url, contentType: row.media_type, bytes: await readVerified(services.storage, file) };
  } catch (error) {
    if (error instanceof StorageBrokenError) return null;
    throw error;
  }
}
