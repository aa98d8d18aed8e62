import { organizationId, taskRef } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { contextRevisionSchema } from './documents.ts';
import { checkPromotion, promote, promotionBody, taskPromotionBody } from './promotion.ts';
import { retainSourceEndpoint } from './retention.ts';
import { readTaskDocuments } from './task_files.ts';

const BASE = '/internal/agent/organizations/{organizationId}';
const RULES =
  'Documents of the base revision that are not named stay; `removePaths` removes documents. Sources that are cited as evidence have to be `ingested`. 409 if `baseRevision` is not the published revision, and until the onboarding is completed.';

/** The context, for agents. */
export function agentContextEndpoints(): readonly Endpoint[] {
  return [
    retainSourceEndpoint('agent', `${BASE}/context/sources`),
    endpoint({
      method: 'post',
      path: `${BASE}/context/promotions`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'promoteContext',
      summary: 'Publish a context revision',
      description: `${RULES} For the service token and runs of operator and chat profiles; a run of a department profile publishes from its task instead.`,
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
              entries: [
                { key: 'regions', title: 'Sales regions', value: 'north, south, east, west', status: 'confirmed' },
              ],
            },
          ],
        },
      },
      external: true,
      costly: true,
      async handler({ db, services, params, body, caller, commit }) {
        const { documents, ...where } = body;
        const promotion = { ...where, organizationId: params.organizationId, caller };
        await checkPromotion(db, promotion);
        return promote({ db, storage: services.storage, commit }, promotion, documents);
      },
    }),
    endpoint({
      method: 'post',
      path: `${BASE}/tasks/{taskRef}/context-revisions/promote`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'promoteContextOfTask',
      summary: 'Publish a context revision from output files',
      description: `Each output file of the task contains \`{"entries": […]}\`. ${RULES} The service token and runs of operator and chat profiles can publish from any task; a run of a department profile from its own task and the tasks below it, into the scope of its department.`,
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
      external: true,
      costly: true,
      async handler({ db, services, params, body, caller, commit }) {
        const { documents: wanted, ...where } = body;
        const promotion = { ...where, ...params, caller };
        await checkPromotion(db, promotion);
        const ownRunId = caller.kind === 'capability' ? caller.actor.runId : null;
        const documents = await readTaskDocuments(db, services.storage, { ...params, ownRunId }, wanted);
        return promote({ db, storage: services.storage, commit }, promotion, documents);
      },
    }),
  ];
}
