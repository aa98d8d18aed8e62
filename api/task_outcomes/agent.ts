import { call } from '../../engine/db/call.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { bodyHash } from '../runs/changes.ts';
import { newOutcomeExample, newOutcomeSchema, outcomeAnswer, outcomeStagedSchema } from './schema.ts';

/** Contract 4.12: what an agent says about its own run, before the worker completes it. */
export function agentOutcomeEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/internal/agent/organizations/{organizationId}/tasks/{taskRef}/outcomes',
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'stageTaskOutcome',
      summary: 'Hand in the outcome of a run',
      description: [
        'Staged for the active run of the task, and applied when that run completes. A run of mode plan hands in a `plan`, one of mode verify a `verification`, one of mode execute nothing (its worker completes it); plan and execute runs may say `waiting` or `needs_input` instead. One outcome a run: the same idempotencyKey with the same body answers the same, anything else 409.',
        'A run hands in its own outcome alone, otherwise 401; the service token that of any run. 409 for another run than the active one, a kind that its mode does not have, and a version or revision that is not current.',
        'A plan is checked as far as that is possible: 400 with an issue for every key, task or profile that is not there, 409 for circles, limits (maxPlanOperations, maxTaskDepth, maxInitiativeDescendants) and tasks that are over or not below the initiative. It is checked again when it is applied; what does not fit any more fails the run, retryable (`plan_rejected`).',
      ].join(' '),
      params: { organizationId, taskRef },
      body: newOutcomeSchema,
      response: { status: 201, data: outcomeStagedSchema },
      example: { body: newOutcomeExample },
      async handler({ db, params, body, caller }) {
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          body,
          bodyHash: bodyHash(body),
          actor: actorOf(caller),
        };
        return (await call(db, 'task_outcome_stage', args, outcomeAnswer)).outcome;
      },
    }),
  ];
}
