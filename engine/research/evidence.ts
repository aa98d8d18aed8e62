import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../db/call.ts';
import { scoped } from '../db/scope.ts';
import { checkVerified, type Storage, StorageBrokenError } from '../storage/index.ts';
import { readPage } from '../website/index.ts';
import type { Evidence } from './claims.ts';

/** More documents than a model can make use of in one question. */
const MAX_DOCUMENTS = 60;
const MAX_FILE_BYTES = 5 * 1024 * 1024;
/** Of each file: more than its share of what the model is shown. */
const MAX_TEXT_BYTES = 512 * 1024;

const sourceRow = z.object({
  id: z.string(),
  origin: z.string(),
  kind: z.string(),
  file_name: z.string(),
  media_type: z.string(),
  storage_key: z.string(),
  size_bytes: z.int(),
  sha256: z.string(),
  title: z.string().nullable(),
  url: z.string().nullable(),
});
type Source = z.output<typeof sourceRow>;

async function firstBytes(storage: Storage, source: Source, limit: number, signal?: AbortSignal): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const file = { key: source.storage_key, size: source.size_bytes, sha256: source.sha256 };
  // All of it is read, so that what is quoted comes from a file that is whole.
  await checkVerified(storage, file, {
    signal,
    observe(chunk) {
      if (size < limit) chunks.push(chunk);
      size += chunk.length;
    },
  });
  return Buffer.concat(chunks).subarray(0, limit);
}

async function textOf(storage: Storage, source: Source, signal?: AbortSignal): Promise<string> {
  if (source.kind !== 'page') {
    return new TextDecoder().decode(await firstBytes(storage, source, MAX_TEXT_BYTES, signal));
  }
  const bytes = await firstBytes(storage, source, source.size_bytes, signal);
  const page = await readPage({ url: source.url ?? '', contentType: source.media_type, bytes }, signal);
  return [page.description, page.ordered].filter((part) => part !== null).join('\n');
}

/**
 * The texts that the research of an organization may rest on: what its owner put in, and the pages `pageIds` (all when
 * undefined), oldest first. Files without text, very large and broken ones are left out.
 * @throws StorageUnavailableError, or the signal's reason
 */
export async function readEvidence(
  services: Readonly<{ db: Queries; storage: Storage }>,
  organizationId: string,
  pageIds: readonly string[] | undefined,
  signal?: AbortSignal,
): Promise<Evidence[]> {
  const rows = await services.db.any(
    scoped(
      organizationId,
      sourceRow,
      sql.fragment`
        select s.id::text, s.origin, s.kind, s.file_name, s.media_type, s.storage_key, s.size_bytes, s.sha256, s.title,
          s.provenance_urls ->> 0 as url
        from app.context_sources s
        where s.organization_id = scope.organization_id
          and s.status <> 'failed' and s.size_bytes between 1 and ${MAX_FILE_BYTES}
          and (s.origin = 'onboarding' and s.media_type ~ '^text/|json|yaml|toml'
            or s.origin = 'research' and s.kind = 'page'
              and (${pageIds === undefined} or s.id = any(${sql.array([...(pageIds ?? [])], 'uuid')})))
        order by s.created_at, s.id
        limit ${MAX_DOCUMENTS}`,
    ),
  );
  const evidence: Evidence[] = [];
  for (const source of rows) {
    try {
      const text = await textOf(services.storage, source, signal);
      if (text.trim() === '') continue;
      evidence.push({ sourceId: source.id, origin: source.url ?? source.file_name, title: source.title, text });
    } catch (error) {
      if (!(error instanceof StorageBrokenError)) throw error;
    }
  }
  return evidence;
}
