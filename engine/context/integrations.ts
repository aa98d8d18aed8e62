import { z } from 'zod';
import { INTEGRATION_STATUSES, READINESSES } from '../integration_states.ts';
import { type Finding, findingSchema } from './health_report.ts';

const words = z.array(z.string()).default([]);

/** What an owner said that an integration means (docs/interface.md 4.10). */
export const contextMappingSchema = z.looseObject({
  departments: words,
  businessFunctions: words,
  workflowKeys: words,
  taskPatterns: words,
  role: z.string().optional(),
});

/** An integration as a report compares it with the context. */
export const comparedIntegrationSchema = z.object({
  key: z.string(),
  status: z.enum(INTEGRATION_STATUSES),
  readiness: z.enum(READINESSES),
  mapping: contextMappingSchema.nullable(),
});
export type ComparedIntegration = z.output<typeof comparedIntegrationSchema>;

export type Reconciliation = Readonly<{ findings: Finding[]; mappedConnectorKeys: string[] }>;

/** Of one report; the rest is counted. */
const MAX_FINDINGS = 500;
/** Of each list of a mapping, in a message. */
const MAX_WORDS = 10;
const USABLE: readonly string[] = ['ready', 'degraded'];
const ORDER = ['critical', 'warning', 'info'];

function finding(severity: Finding['severity'], code: string, message: string, scope: string | null = null): Finding {
  return findingSchema.parse({ code, severity, scope, message });
}

function listed(title: string, list: readonly string[]): string[] {
  if (list.length === 0) return [];
  const more = list.length > MAX_WORDS ? `, and ${list.length - MAX_WORDS} more` : '';
  return [`${title} ${list.slice(0, MAX_WORDS).join(', ')}${more}`];
}

function ofMapped({ key, status, readiness, mapping }: ComparedIntegration, departments: readonly string[]): Finding[] {
  if (mapping === null) return [];
  const said = [
    ...listed('departments', mapping.departments),
    ...listed('business functions', mapping.businessFunctions),
    ...listed('workflows', mapping.workflowKeys),
    ...listed('task patterns', mapping.taskPatterns),
    ...(mapping.role === undefined ? [] : [`role ${mapping.role}`]),
  ].join('; ');
  const found = [finding('info', 'integration_mapped', `The integration ${key} is mapped: ${said}.`)];
  if (status === 'disabled' || !USABLE.includes(readiness)) {
    const state = status === 'disabled' ? 'is disabled' : `is ${readiness}`;
    const message = `The integration ${key} is mapped and ${state}: connect and enable it, or delete it.`;
    found.push(finding('warning', 'integration_unusable', message));
  }
  for (const department of mapping.departments.filter((one) => !departments.includes(one))) {
    const message = `The integration ${key} is mapped to the department ${department}, which is not enabled: map it anew.`;
    found.push(finding('warning', 'integration_department_disabled', message, department));
  }
  return found;
}

/** How the integrations fit what their owner said of them; the worst first, a bounded list. */
export function reconcileIntegrations(
  integrations: readonly ComparedIntegration[],
  /** The enabled ones. */
  departments: readonly string[],
): Reconciliation {
  const found = integrations.flatMap((integration) => {
    const { key, status, readiness, mapping } = integration;
    if (mapping !== null) return ofMapped(integration, departments);
    if (status === 'disabled' || !USABLE.includes(readiness)) return [];
    const message = `Nothing says what the integration ${key} is for: map it to departments, functions, workflows or a role.`;
    return [finding('info', 'integration_unmapped', message)];
  });
  found.sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  const left = found.length - MAX_FINDINGS;
  const more = finding('info', 'more_findings', `There are ${left} findings more: solve these first.`);
  return {
    findings: left <= 0 ? found : [...found.slice(0, MAX_FINDINGS), more],
    mappedConnectorKeys: integrations.filter(({ mapping }) => mapping !== null).map(({ key }) => key),
  };
}
