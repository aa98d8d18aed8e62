import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { dispositionSchema, reviewSummarySchema, setupSchema } from '../../engine/onboarding/index.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { ids, times } from '../http/openapi/example_values.ts';
import { department } from '../organizations/schema.ts';

export const ONBOARDING_STATUSES = [
  'collecting',
  'researching',
  'research_failed',
  'review',
  'completed',
  'discarded',
] as const;
export const RESEARCH_STATUSES = ['not_started', 'queued', 'running', 'completed', 'failed'] as const;

const warningSchema = z.looseObject({ code: z.string(), message: z.string() });
const errorSchema = z.looseObject({ code: z.string(), message: z.string() });

const sourceSchema = z.object({
  id: uuid.describe('Chosen by the client, unique in the organization.'),
  kind: z.string().describe('`file` or `markdown`.'),
  status: z
    .enum(['stored', 'ingested', 'failed'])
    .describe('`ingested`: read completely, may serve as evidence. `failed`: unreadable.'),
  fileName: z.string(),
  mediaType: z.string().describe('Determined from the file name and the bytes.'),
  sizeBytes: z.int(),
  sha256: z.string().describe('Of the bytes, in hex.'),
  department: department.nullable().describe('Null: evidence for the whole organization.'),
  createdAt: dateTime,
});

const findingSchema = z.object({
  id: uuid,
  claim: z.string(),
  evidence: z
    .array(uuid)
    .describe('Ids of the sources that support the claim. Pages are listed in `/context/sources`.'),
  createdAt: dateTime,
});

const reviewSchema = z
  .object({ sha256: z.string(), warnings: z.array(warningSchema), summary: reviewSummarySchema })
  .describe(
    'What completing the onboarding confirms. `sha256` is of the canonical JSON (RFC 8785) of `{summary, warnings}`.',
  );

export const onboardingSchema = z
  .object({
    organizationId: uuid,
    status: z
      .enum(ONBOARDING_STATUSES)
      .describe('`collecting` sources and setup, then `researching`, `review` and `completed`.'),
    generation: z
      .int()
      .describe('Rises with every change. Calls that change the onboarding name the one that they saw.'),
    setup: setupSchema,
    sources: z.array(sourceSchema),
    integrations: z.array(dispositionSchema),
    chatId: uuid.nullable().describe('The onboarding chat, once the research has started.'),
    research: z.object({
      status: z.enum(RESEARCH_STATUSES),
      attempts: z.int(),
      startedAt: dateTime.nullable(),
      finishedAt: dateTime.nullable(),
      error: errorSchema.nullable(),
      findings: z.array(findingSchema),
    }),
    review: reviewSchema.nullable().describe('Present from the end of the research.'),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'Onboarding' });
export type Onboarding = z.output<typeof onboardingSchema>;

const sourceRow = z
  .object({
    id: z.string(),
    kind: z.string(),
    status: z.enum(['stored', 'ingested', 'failed']),
    file_name: z.string(),
    media_type: z.string(),
    size_bytes: z.int(),
    sha256: z.string(),
    department: department.nullable(),
    created_at: timestamp,
  })
  .pipe(
    mapping((row) => ({
      id: row.id,
      kind: row.kind,
      status: row.status,
      fileName: row.file_name,
      mediaType: row.media_type,
      sizeBytes: row.size_bytes,
      sha256: row.sha256,
      department: row.department,
      createdAt: row.created_at,
    })),
  );

const findingRow = z
  .object({ id: z.string(), claim: z.string(), source_ids: z.array(z.string()), created_at: timestamp })
  .pipe(mapping((row) => ({ id: row.id, claim: row.claim, evidence: row.source_ids, createdAt: row.created_at })));

/** What `app.onboarding_state` makes of a row of `app.onboardings`. */
const onboardingRow = z
  .object({
    organization_id: z.string(),
    status: z.enum(ONBOARDING_STATUSES),
    generation: z.int(),
    setup: setupSchema,
    sources: z.array(sourceRow),
    integrations: z.array(dispositionSchema),
    chat_id: z.string().nullable(),
    research_status: z.enum(RESEARCH_STATUSES),
    research_attempts: z.int(),
    research_started_at: nullableTimestamp,
    research_finished_at: nullableTimestamp,
    research_error: errorSchema.nullable(),
    findings: z.array(findingRow),
    review: reviewSchema.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): Onboarding => ({
        organizationId: row.organization_id,
        status: row.status,
        generation: row.generation,
        setup: row.setup,
        sources: row.sources,
        integrations: row.integrations,
        chatId: row.chat_id,
        research: {
          status: row.research_status,
          attempts: row.research_attempts,
          startedAt: row.research_started_at,
          finishedAt: row.research_finished_at,
          error: row.research_error,
          findings: row.findings,
        },
        review: row.review,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      }),
    ),
  );

export const onboardingResult = z.object({ onboarding: onboardingRow });
/** Of transitions after which stored bytes are nobody's any more. */
export const removalResult = onboardingResult.extend({ removedKeys: z.array(z.string()) });
export const sourcePutResult = onboardingResult.extend({ stored: z.boolean() });

export const onboardingExample = {
  organizationId: ids.organization,
  status: 'collecting',
  generation: 1,
  setup: {
    name: 'Lamp Studio',
    website: 'https://lampstudio.example/',
    timezone: 'Europe/Berlin',
    defaultCurrency: 'EUR',
    departments: ['growth', 'engineering', 'support'],
    summary: null,
  },
  sources: [],
  integrations: [],
  chatId: null,
  research: { status: 'not_started', attempts: 0, startedAt: null, finishedAt: null, error: null, findings: [] },
  review: null,
  createdAt: times.founded,
  updatedAt: times.founded,
} satisfies Onboarding;
