import { z } from 'zod';
import { organizationId, uuid } from '../fields/ids.ts';
import type { AgentCaller } from '../http/caller.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { type ActionScope, actionListQuery, getAction, listActions } from './list.ts';
import { actionExample, actionSchema } from './schema.ts';

const ACTIONS = '/internal/agent/organizations/{organizationId}/actions';
const OWN = 'An execution sees those of its task or chat, the service token all.';

/** An agent's own: also those of earlier runs of its task, which its run may have waited for. */
function scopeOf(caller: AgentCaller): ActionScope {
  return caller.kind === 'service' ? undefined : caller.actor;
}

/** Actions, for agents: they propose them through the gateway, and decide about none. */
export function agentActionEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: ACTIONS,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'listActionsAsAgent',
      summary: 'List actions',
      description: `Newest first. ${OWN}`,
      params: { organizationId },
      query: actionListQuery,
      response: { data: z.array(actionSchema), list: true },
      example: { data: [actionExample] },
      handler: ({ db, params, query, caller }) => listActions(db, params.organizationId, query, scopeOf(caller)),
    }),
    endpoint({
      method: 'get',
      path: `${ACTIONS}/{actionId}`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'getActionAsAgent',
      summary: 'Get an action',
      description: `Another’s is 404. ${OWN}`,
      params: { organizationId, actionId: uuid.describe('The action.') },
      response: { data: actionSchema },
      example: { data: actionExample },
      handler: ({ db, params, caller }) => getAction(db, params.organizationId, params.actionId, scopeOf(caller)),
    }),
  ];
}
