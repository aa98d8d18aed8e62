import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { times } from '../http/openapi/example_values.ts';
import {
  dependencySchema,
  newDependencySchema,
  newTaskExample,
  newTaskResponseExample,
  newTaskSchema,
  taskPatchSchema,
} from './changes.ts';
import { deleteDependencyEndpoint, dependencyListQuery, dependencyResult, listDependencies } from './dependencies.ts';
import { EXPLAIN_DESCRIPTION, explainTask, taskExplanationSchema } from './explain.ts';
import { taskInputEndpoint } from './inputs.ts';
import { getTask, listTasks, taskListQuery } from './list.ts';
import { taskCallResult, taskSchema } from './schema.ts';

const BASE = '/internal/agent/organizations/{organizationId}/tasks';
const MAY =
  'The service token and runs of operator and chat profiles can change any task. A run of a department profile can change its own task and the tasks below it; anything else is 401.';

/** Tasks and their dependencies, for agents. */
export function agentTaskEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: BASE,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'listTasksAsAgent',
      summary: 'List tasks',
      description: 'Like `listTasks`. Keep the sort and the filters while you page.',
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
      description: `Like \`createTask\`: while a task with the same \`dedupeKey\` is open, the call returns that one with 201. ${MAY}`,
      params: { organizationId },
      body: newTaskSchema,
      response: { status: 201, data: taskSchema },
      example: { body: newTaskExample, data: newTaskResponseExample },
      async handler({ db, params, body, caller }) {
        const args = { organizationId: params.organizationId, task: body, actor: actorOf(caller) };
        const { task } = await call(db, 'task_create', args, taskCallResult);
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
      description: 'Like `getTask`.',
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
      costly: true,
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
      description: `A JSON merge patch (RFC 7396) with \`expectedVersion\`. Changing the spec, the owner or \`scheduledAt\` of a running task is 409; of a task that a worker has claimed, it ends the claim and publishes the run request again. ${MAY}`,
      params: { organizationId, taskRef },
      body: taskPatchSchema,
      response: { data: taskSchema },
      example: {
        body: { expectedVersion: 1, priority: 5, dueAt: times.due },
      },
      async handler({ db, params, body, caller }) {
        const { expectedVersion, ...patch } = body;
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          expectedVersion,
          patch,
          actor: actorOf(caller),
        };
        const { task } = await call(db, 'task_update', args, taskCallResult);
        return task;
      },
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/{taskRef}/dependencies`,
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'listTaskDependenciesAsAgent',
      summary: 'List the prerequisites of a task',
      description: 'Newest dependency first.',
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
      summary: 'Make a task wait for another',
      description: `Repeating the call returns the dependency that exists. 409 if the dependency closes a cycle or points at an ancestor, or if the task is running or no longer open. ${MAY}`,
      params: { organizationId, taskRef },
      body: newDependencySchema,
      response: { status: 201, data: dependencySchema },
      example: { body: { dependsOn: 'T-11' } },
      async handler({ db, params, body, caller }) {
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          dependsOn: body.dependsOn,
          required: body.required,
          actor: actorOf(caller),
        };
        const { dependency } = await call(db, 'task_dependency_create', args, dependencyResult);
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
        summary: verb === 'cancel' ? 'Cancel a task and all tasks below it' : 'Retry failed work',
        description: `Like \`${verb}Task\`${verb === 'retry' ? ', but not for a task that a person cancelled' : ''}. ${MAY}`,
        params: { organizationId, taskRef },
        response: { data: taskSchema },
        async handler({ db, params, caller }) {
          const args = {
            organizationId: params.organizationId,
            taskRef: params.taskRef,
            actor: actorOf(caller),
          };
          const { task } = await call(db, `task_${verb}`, args, taskCallResult);
          return task;
        },
      }),
    ),
    deleteDependencyEndpoint('agent', `${BASE}/{taskRef}/dependencies/{dependsOnRef}`, MAY),
    taskInputEndpoint('agent', `${BASE}/{taskRef}/inputs/{path*}`),
  ];
}
