import { organizationId, taskRef } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { contextRevisionSchema } from './documents.ts';
import { checkPromotion, promote, promotionBody, taskPromotionBody } from './promotion.ts';
import { retainSourceEndpoint } from './retention.ts';
import { readTaskDocuments } from './task_files.ts';

const BASE = '/internal/agent/organizations/{organizationId}';
const RULES =
  'Documents of the base that are not named stay, `removePaths` leaves some out; a revision never changes. Evidence that names a source needs one that is ingested. Another base than the published revision: 409. Before the onboarding is complete: 409.';

/** The promotions of contract 4.12. */
export function agentContextEndpoints(): readonly Endpoint[] {
  return [
    retainSourceEndpoint('agent', `${BASE}/context/sources`),
    endpoint({
      method: 'post',
      path: `${BASE}/context/promotions`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'promoteContext',
      summary: 'Publish a revision of the context',
      description: `The service token and runs of operator and chat profiles may; a department promotes by its task. ${RULES}`,
      params: { organizationId },
      body: promotionBody,
      response: { status: 201, data: contextRevisionSchema },
      example: {
        body: {
          scope: 'organization',
          baseRevision: 0,
          documents: [
            {
              kind: 'facts',
              path: 'facts.json',
              entries: [{ key: 'founded', title: 'Founded in', value: '2019', status: 'confirmed' }],
            },
          ],
        },
      },
      async handler({ db, services, params, body, caller }) {
        const { documents, ...where } = body;
        const promotion = { ...where, organizationId: params.organizationId, caller };
        await checkPromotion(db, promotion);
        return promote(db, services.storage, promotion, documents);
      },
    }),
    endpoint({
      method: 'post',
      path: `${BASE}/tasks/{taskRef}/context-revisions/promote`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'promoteContextOfTask',
      summary: "Publish a revision of the context from a task's output files",
      description: `Each file holds \`{"entries": […]}\`. The service token and runs of operator and chat profiles promote from any task; a run of a department from its own task and those below it, into its department's scope. ${RULES}`,
      params: { organizationId, taskRef },
      body: taskPromotionBody,
      response: { data: contextRevisionSchema },
      example: {
        body: {
          scope: 'growth',
          baseRevision: 3,
          documents: [{ kind: 'facts', path: 'market.json', outputPath: 'context/market.json' }],
        },
      },
      async handler({ db, services, params, body, caller }) {
        const { documents: wanted, ...where } = body;
        const promotion = { ...where, ...params, caller };
        await checkPromotion(db, promotion);
        const ownRunId = caller.kind === 'capability' ? caller.actor.runId : null;
        const documents = await readTaskDocuments(db, services.storage, { ...params, ownRunId }, wanted);
        return promote(db, services.storage, promotion, documents);
      },
    }),
  ];
}
