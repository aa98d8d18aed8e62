import { call } from '../../engine/db/call.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { newInboxItemSchema } from './changes.ts';
import { inboxItemExample, inboxItemResult, inboxItemSchema } from './schema.ts';

/** Questions and notifications of agents. */
export function agentInboxEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/internal/agent/organizations/{organizationId}/tasks/{taskRef}/human-inbox',
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'createHumanInboxItemAsAgent',
      summary: 'Ask or notify a person',
      description:
        'Adds an item about an open task to the inbox. If a blocking question is still open when the run of the task ends, the task is blocked, whatever the result of the run; a task that is not running is blocked immediately. The answer is added to `state.answers`, and the task runs again. A task can have 100 open items; more are 409. The service token and runs of operator and chat profiles can ask about any task. A run of a department profile can ask about its own task and the tasks below it; anything else is 401.',
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
        return (await call(db, 'human_inbox_item_create', args, inboxItemResult)).item;
      },
    }),
  ];
}
