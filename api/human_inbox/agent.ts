import { call } from '../../engine/db/call.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { newInboxItemSchema } from './changes.ts';
import { inboxItemAnswer, inboxItemExample, inboxItemSchema } from './schema.ts';

/** Contract 4.12: questions and notifications of agents (decisions 7). */
export function agentInboxEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/internal/agent/organizations/{organizationId}/tasks/{taskRef}/human-inbox',
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'createHumanInboxItemAsAgent',
      summary: 'Ask or tell a person',
      description:
        'About an open task. A blocking question that is still open when the run of the task is over blocks the task, whatever the result of the run; the answer goes into state.answers, and the task runs again. A task that does not run is blocked at once. Options are suggestions unless allowFreeText is false. A task has at most 100 open items (409). The service token and runs of operator and chat profiles ask about any task; a run of a department profile about its own task and those below it; otherwise 401.',
      params: { organizationId, taskRef },
      body: newInboxItemSchema,
      response: { status: 201, data: inboxItemSchema },
      example: {
        body: {
          kind: 'question',
          title: inboxItemExample.title,
          body: inboxItemExample.body,
          options: inboxItemExample.options,
          blocking: true,
        },
        data: inboxItemExample,
      },
      async handler({ db, params, body, caller }) {
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          item: body,
          actor: actorOf(caller),
        };
        return (await call(db, 'human_inbox_item_create', args, inboxItemAnswer)).item;
      },
    }),
  ];
}
