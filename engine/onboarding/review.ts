import { z } from 'zod';
import { CONTEXT_SCOPES } from '../context/index.ts';

const department = z.enum(CONTEXT_SCOPES).exclude(['organization']);

export const DISPOSITIONS = ['unknown', 'connect_now', 'connect_later', 'not_used'] as const;

export const setupSchema = z
  .object({
    name: z.string(),
    website: z.string().nullable(),
    timezone: z.string(),
    defaultCurrency: z.string().nullable().describe('ISO 4217.'),
    departments: z.array(department),
    summary: z.string().nullable().describe('What the organization does.'),
  })
  .meta({ id: 'OnboardingSetup' });

export const dispositionSchema = z
  .object({
    integrationKey: z.string(),
    disposition: z.enum(DISPOSITIONS),
    departments: z.array(department).describe('The departments that will use it. Empty: all.'),
  })
  .meta({ id: 'OnboardingIntegration', description: 'What an organization plans to do with an integration.' });

/** What `app.onboarding_review` puts together; the completion publishes this and nothing else. */
export const reviewSummarySchema = z.object({
  setup: setupSchema,
  integrations: z.array(dispositionSchema),
  sources: z.array(
    z.object({
      id: z.string(),
      kind: z.string(),
      fileName: z.string(),
      mediaType: z.string(),
      sizeBytes: z.int(),
      sha256: z.string(),
      department: department.nullable(),
      usable: z.boolean().describe('False: its stored bytes are damaged.'),
    }),
  ),
  evidence: z
    .array(
      z.object({
        id: z.string(),
        title: z.string(),
        urls: z.array(z.string()),
        sha256: z.string(),
        usable: z.boolean(),
        excerpt: z.string().describe('A few sentences of the page, or that it has no text.'),
        text: z
          .string()
          .describe('What the completion publishes of the page: the beginning of its main text. Empty: none.'),
      }),
    )
    .describe('Pages that the research read, as text.'),
  findings: z.array(z.object({ id: z.string(), claim: z.string(), evidence: z.array(z.string()) })),
});
export type ReviewSummary = z.output<typeof reviewSummarySchema>;
