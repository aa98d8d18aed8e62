import { z } from 'zod';
import { canonicalJson } from '../canonical_json.ts';

/** What a context revision is of: the organization, or a department. */
export const CONTEXT_SCOPES = ['organization', 'growth', 'engineering', 'support'] as const;
export type ContextScope = (typeof CONTEXT_SCOPES)[number];

export const DOCUMENT_KINDS = ['facts', 'strategy', 'processes', 'glossary', 'notes'] as const;
export type DocumentKind = (typeof DOCUMENT_KINDS)[number];

export const DOCUMENT_MEDIA_TYPE = 'application/json';
export const DOCUMENT_MAX_BYTES = 1_048_576;
/** Of a revision, as `app.context_promote` has it. */
export const REVISION_MAX_DOCUMENTS = 100;

const text = (maximum: number) => z.string().max(maximum);

/** An entry of a document (docs/interface.md 2.8); what is left out is null or empty. */
export const entrySchema = z.strictObject({
  key: text(200).min(1).describe('Unique in the document.'),
  title: text(500).nullable().default(null),
  value: z
    .union([text(20_000), z.number(), z.boolean()])
    .nullable()
    .default(null),
  status: text(100).nullable().default(null),
  notes: text(20_000).nullable().default(null),
  evidence: z
    .array(text(2_000).min(1))
    .max(100)
    .default([])
    .describe(
      'What grounds it. A source of the organization is named by its id or by `org://{organizationId}/context/sources/{sourceId}`, and has to be ingested; anything else is kept as it is.',
    ),
  steps: z.array(text(5_000)).max(200).default([]),
});
export type Entry = z.output<typeof entrySchema>;

export const entriesSchema = z
  .array(entrySchema)
  .max(2_000)
  .refine((entries) => new Set(entries.map(({ key }) => key)).size === entries.length, 'must have a key each');

/** The content of a document's file. */
export const documentSchema = z.strictObject({ entries: entriesSchema });

/** A file that is no document of the context; the message says what is wrong with it. */
export class DocumentError extends Error {
  override name = 'DocumentError';
}

/** The bytes of a document's file: the same for the same entries. @throws DocumentError when they are too many */
export function encodeDocument(entries: readonly Entry[]): Buffer {
  const bytes = Buffer.from(canonicalJson({ entries }), 'utf8');
  if (bytes.length > DOCUMENT_MAX_BYTES) throw new DocumentError(`has more than ${DOCUMENT_MAX_BYTES} bytes`);
  return bytes;
}

/** The entries of a document's file. @throws DocumentError */
export function decodeDocument(bytes: Uint8Array): Entry[] {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new DocumentError('is not JSON');
  }
  const parsed = documentSchema.safeParse(value);
  if (parsed.success) return parsed.data.entries;
  const [issue] = parsed.error.issues;
  throw new DocumentError(`is no document of the context: ${issue?.path.join('.')} ${issue?.message}`);
}
