import { z } from 'zod';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { auditListQuery, listAuditEntries } from './list.ts';
import { auditEntryExample, auditEntrySchema } from './schema.ts';

/** [+]: who decided what in an organization. */
export function auditEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/audit',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'listAuditEntries',
      summary: 'List what people and administrators decided',
      description:
        'Newest first. Each entry was written in the transaction that carried the decision out, and never changes; entries are kept as long as the organization. A call that was refused and changed nothing leaves none, nor does the replay of an Idempotency-Key; a call that found everything as it wanted it leaves one. Reads, messages, uploads and what agents and workers do are no decisions; approvals in a chat are.',
      params: { organizationId },
      query: auditListQuery,
      response: { data: z.array(auditEntrySchema), list: true },
      example: { data: [auditEntryExample] },
      handler: ({ db, params, query }) => listAuditEntries(db, params.organizationId, query),
    }),
  ];
}
