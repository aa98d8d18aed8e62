import { z } from 'zod';
import { mapping } from '../mapping.ts';
import { DocumentError } from './document.ts';

export const ASSESSMENTS = ['full_audit', 'integration_reconciliation'] as const;
export type Assessment = (typeof ASSESSMENTS)[number];

export const HEALTH_VERSION = 3;

const nullableText = z.string().nullable().default(null);

/** One thing that is wrong, or could be better. */
export const findingSchema = z
  .object({
    code: z.string(),
    severity: z.enum(['critical', 'warning', 'info']).default('info'),
    scope: nullableText,
    path: nullableText,
    entryKey: nullableText,
    sourceId: nullableText,
    message: z.string().describe('What is wrong and how to fix it.'),
  })
  .meta({ id: 'ContextFinding' });
export type Finding = z.output<typeof findingSchema>;

const instant = z.iso.datetime();

/** The file of a report. */
export const healthReportSchema = z.object({
  version: z.literal(HEALTH_VERSION),
  generatedAt: instant,
  findings: z.object({ general: z.array(findingSchema), integrations: z.array(findingSchema) }),
  fullAuditAt: instant.nullable(),
  integrationReconciliationAt: instant.nullable(),
  mappedConnectorKeys: z.array(z.string()),
});
export type HealthReport = z.output<typeof healthReportSchema>;

/** Version 2 knew no reconciliation: two flat lists, and every report was a full audit. */
const version2 = z
  .object({
    version: z.literal(2),
    generatedAt: instant,
    findings: z.array(findingSchema),
    integrationFindings: z.array(findingSchema).default([]),
    mappedConnectorKeys: z.array(z.string()).default([]),
  })
  .pipe(
    mapping(
      (old): HealthReport => ({
        version: HEALTH_VERSION,
        generatedAt: old.generatedAt,
        findings: { general: old.findings, integrations: old.integrationFindings },
        fullAuditAt: old.generatedAt,
        integrationReconciliationAt: null,
        mappedConnectorKeys: old.mappedConnectorKeys,
      }),
    ),
  );

/** Version 1 had sentences. */
const version1 = z.object({ version: z.literal(1), generatedAt: instant, findings: z.array(z.string()) }).pipe(
  mapping(
    (old): HealthReport => ({
      version: HEALTH_VERSION,
      generatedAt: old.generatedAt,
      findings: {
        general: old.findings.map((message) => findingSchema.parse({ code: 'note', message })),
        integrations: [],
      },
      fullAuditAt: old.generatedAt,
      integrationReconciliationAt: null,
      mappedConnectorKeys: [],
    }),
  ),
);

const anyVersion = z.union([healthReportSchema, version2, version1]);

/** A report of any version, as version 3 (docs/interface.md 9). @throws DocumentError when the bytes are none */
export function decodeHealthReport(bytes: Uint8Array): HealthReport {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new DocumentError('is not JSON');
  }
  const parsed = anyVersion.safeParse(value);
  if (!parsed.success) throw new DocumentError('is no health report');
  return parsed.data;
}
