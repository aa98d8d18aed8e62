import { call } from '../../engine/db/call.ts';
import { organizationId } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { times } from '../http/openapi/example_values.ts';
import { workDispatchBody } from './changes.ts';
import { organizationExample, workDispatchResult, workDispatchSchema } from './schema.ts';
import { agentStatusSchema, getAgentStatus } from './status.ts';

const BASE = '/internal/agent/organizations/{organizationId}';

/** Status and work dispatch, for agents. */
export function agentOrganizationEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: `${BASE}/status`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'getAgentStatus',
      summary: 'Get the state of the organization and the caller',
      description: 'The state of work dispatch, and whom the token of the caller identifies.',
      params: { organizationId },
      response: { data: agentStatusSchema },
      handler: ({ db, params, caller }) => getAgentStatus(db, params.organizationId, caller),
    }),
    endpoint({
      method: 'patch',
      path: `${BASE}/work-dispatch`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'setWorkDispatchAsAgent',
      summary: 'Stop or resume work dispatch',
      description:
        'Like `setWorkDispatch`. Runs of operator and chat profiles can stop work dispatch; only the service token can resume it. Anything else is 401.',
      params: { organizationId },
      body: workDispatchBody,
      response: { data: workDispatchSchema },
      example: {
        body: { stopped: true },
        data: {
          organization: { ...organizationExample, workDispatchStoppedAt: times.finished },
          publishedRunRequests: 0,
        },
      },
      async handler({ db, params, body, caller }) {
        const args = {
          organizationId: params.organizationId,
          stopped: body.stopped,
          actor: actorOf(caller),
        };
        return call(db, 'work_dispatch_set', args, workDispatchResult);
      },
    }),
  ];
}
