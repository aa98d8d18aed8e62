import { call } from '../../engine/db/call.ts';
import { organizationId } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import { workDispatchBody } from './changes.ts';
import { workDispatchAnswer, workDispatchSchema } from './schema.ts';
import { agentStatusSchema, getAgentStatus } from './status.ts';

const BASE = '/internal/agent/organizations/{organizationId}';

/** Contract 4.12: status and work dispatch. */
export function agentOrganizationEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: `${BASE}/status`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'getAgentStatus',
      summary: 'How the organization stands, and who asks',
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
      summary: 'Stop work dispatch, or resume it',
      description:
        'Operator and chat profiles may stop it; only the service token may lift a stop. Answers what the owner-facing endpoint answers.',
      params: { organizationId },
      body: workDispatchBody,
      response: { data: workDispatchSchema },
      async handler({ db, params, body, caller, notify }) {
        const args = {
          organizationId: params.organizationId,
          stopped: body.stopped,
          actor: actorOf(caller),
        };
        const answer = await call(db, 'work_dispatch_set', args, workDispatchAnswer);
        notify(PULL_CHANNEL);
        return answer;
      },
    }),
  ];
}
