import { call } from '../../engine/db/call.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { bodyHash } from '../runs/changes.ts';
import { newOutcomeExample, newOutcomeSchema, outcomeResult, outcomeStagedSchema } from './schema.ts';

/** What an agent reports about its own run, before the worker completes it. */
export function agentOutcomeEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/internal/agent/organizations/{organizationId}/tasks/{taskRef}/outcomes',
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'stageTaskOutcome',
      summary: 'Submit the outcome of a run',
      description: [
        'Stages the outcome for the active run of the task. It is applied when the run completes. A run with mode `plan` submits a `plan`, one with mode `verify` a `verification`; a run with mode `execute` submits none, since its worker completes it. Plan and execute runs may submit `waiting` or `needs_input` instead. A run has one outcome: repeating the call with the same `idempotencyKey` and body returns it, anything else is 409.',
        'A run can submit its own outcome only (else 401); the service token can submit that of any run. 409 if the run is not the active one, its mode does not have this kind of outcome, or `taskVersion` or `graphRevision` is not current.',
        'A plan is checked now: unknown keys, tasks and profiles are 400, with an issue each; cycles, exceeded limits (`maxPlanOperations`, `maxTaskDepth`, `maxInitiativeDescendants`) and tasks that are no longer open or not below the initiative are 409. It is checked again when it is applied; a plan that no longer fits fails the run with `plan_rejected`, which is retryable.',
      ].join('\n\n'),
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
        return (await call(db, 'task_outcome_stage', args, outcomeResult)).outcome;
      },
    }),
  ];
}
