import { z } from 'zod';
import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { auditListQuery, listAuditEntries } from './list.ts';
import { auditEntryExample, auditEntrySchema } from './schema.ts';

/** Who decided what in an organization. */
export function auditEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/audit',
      audience: 'owner',
      tag: 'Organizations',
      operationId: 'listAuditEntries',
      summary: 'List audit entries',
      description:
        'What people and administrators decided, newest first. An entry is written in the transaction that carries the decision out and never changes; entries are kept as long as the organization. A call that had nothing to change leaves an entry too. A call that was refused without changing anything leaves none, nor does the replay of an `Idempotency-Key`. Reads, messages, uploads and the work of agents and workers are not decisions; approvals in a chat are.',
      params: { organizationId },
      query: auditListQuery,
      response: { data: z.array(auditEntrySchema), list: true },
      example: { data: [auditEntryExample] },
      handler: ({ db, params, query }) => listAuditEntries(db, params.organizationId, query),
    }),
  ];
}
