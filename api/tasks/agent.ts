import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import { dependencySchema, newDependencySchema, newTaskExample, newTaskSchema, taskPatchSchema } from './changes.ts';
import { dependencyAnswer, dependencyListQuery, listDependencies } from './dependencies.ts';
import { EXPLAIN_DESCRIPTION, explainTask, taskExplanationSchema } from './explain.ts';
import { taskInputEndpoint } from './inputs.ts';
import { getTask, listTasks, taskListQuery } from './list.ts';
import { taskAnswer, taskSchema } from './schema.ts';

const BASE = '/internal/agent/organizations/{organizationId}/tasks';
const MAY =
  'The service token and runs of operator and chat profiles change any task; a run of a department profile only its own task and those below it; otherwise 401.';

/** Contract 4.12: tasks and their dependencies. */
export function agentTaskEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: BASE,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'listTasksAsAgent',
      summary: 'List tasks',
      params: { organizationId },
      query: taskListQuery,
      response: { data: z.array(taskSchema), list: true },
      handler: ({ db, params, query }) => listTasks(db, params.organizationId, query),
    }),
    endpoint({
      method: 'post',
      path: BASE,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'createTaskAsAgent',
      summary: 'Create a task',
      description: `An open task with the same dedupeKey is answered with 201, and none is made. ${MAY}`,
      params: { organizationId },
      body: newTaskSchema,
      response: { status: 201, data: taskSchema },
      example: { body: newTaskExample },
      async handler({ db, params, body, caller, notify }) {
        const args = { organizationId: params.organizationId, task: body, actor: actorOf(caller) };
        const { task } = await call(db, 'task_create', args, taskAnswer);
        notify(PULL_CHANNEL);
        return task;
      },
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/{taskRef}`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'getTaskAsAgent',
      summary: 'Get a task',
      params: { organizationId, taskRef },
      response: { data: taskSchema },
      handler: ({ db, params }) => getTask(db, params.organizationId, params.taskRef),
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/{taskRef}/explain`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'explainTaskAsAgent',
      summary: 'Tell why a task is not running',
      description: EXPLAIN_DESCRIPTION,
      params: { organizationId, taskRef },
      response: { data: taskExplanationSchema },
      handler: ({ db, params }) => explainTask(db, params.organizationId, params.taskRef),
    }),
    endpoint({
      method: 'patch',
      path: `${BASE}/{taskRef}`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'updateTaskAsAgent',
      summary: 'Change an open task',
      description: `A JSON merge patch (RFC 7396) with expectedVersion. Spec, owner and scheduledAt of a running task: 409; of a claimed one: the claim ends, and the request is published again. ${MAY}`,
      params: { organizationId, taskRef },
      body: taskPatchSchema,
      response: { data: taskSchema },
      example: {
        body: { expectedVersion: 3, priority: 5, spec: { objective: 'Summarize the sales by region and month.' } },
      },
      async handler({ db, params, body, caller, notify }) {
        const { expectedVersion, ...patch } = body;
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          expectedVersion,
          patch,
          actor: actorOf(caller),
        };
        const { task } = await call(db, 'task_update', args, taskAnswer);
        notify(PULL_CHANNEL);
        return task;
      },
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/{taskRef}/dependencies`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'listTaskDependenciesAsAgent',
      summary: 'List what a task waits for, newest first',
      params: { organizationId, taskRef },
      query: dependencyListQuery,
      response: { data: z.array(dependencySchema), list: true },
      handler: ({ db, params, query }) => listDependencies(db, params.organizationId, params.taskRef, query),
    }),
    endpoint({
      method: 'post',
      path: `${BASE}/{taskRef}/dependencies`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'createTaskDependencyAsAgent',
      summary: 'Let a task wait for another',
      description: `The same edge again answers the one that is there. 409 for circles, ancestors, and tasks that run or are over. ${MAY}`,
      params: { organizationId, taskRef },
      body: newDependencySchema,
      response: { status: 201, data: dependencySchema },
      example: { body: { dependsOn: 'T-3' } },
      async handler({ db, params, body, caller }) {
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          dependsOn: body.dependsOn,
          required: body.required,
          actor: actorOf(caller),
        };
        const { dependency } = await call(db, 'task_dependency_create', args, dependencyAnswer);
        return dependency;
      },
    }),
    ...(['cancel', 'retry'] as const).map((verb) =>
      endpoint({
        method: 'post',
        path: `${BASE}/{taskRef}/${verb}`,
        audience: 'agent',
        tag: 'Agent tools',
        operationId: `${verb}TaskAsAgent`,
        summary: verb === 'cancel' ? 'Cancel a task and all below it' : 'Retry failed work',
        description: `As the owner-facing endpoint. ${MAY}`,
        params: { organizationId, taskRef },
        response: { data: taskSchema },
        async handler({ db, params, caller, notify }) {
          const args = {
            organizationId: params.organizationId,
            taskRef: params.taskRef,
            actor: actorOf(caller),
          };
          const { task } = await call(db, `task_${verb}`, args, taskAnswer);
          notify(PULL_CHANNEL);
          return task;
        },
      }),
    ),
    taskInputEndpoint('agent', `${BASE}/{taskRef}/inputs/{path*}`),
  ];
}
