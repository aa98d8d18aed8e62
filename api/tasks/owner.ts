import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { newTaskExample, newTaskResponseExample, newTaskSchema } from './changes.ts';
import { deleteDependencyEndpoint } from './dependencies.ts';
import { EXPLAIN_DESCRIPTION, explainTask, taskExplanationSchema } from './explain.ts';
import { getTaskGraph, taskGraphSchema } from './graph.ts';
import { taskInputEndpoint } from './inputs.ts';
import { getTask, listTasks, taskListQuery } from './list.ts';
import { taskCallResult, taskSchema } from './schema.ts';

const notFound = { status: 404, code: 'task_not_found', when: 'the task does not exist in this organization' } as const;

/** Tasks, for people. */
export function taskEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/tasks',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'listTasks',
      summary: 'List tasks',
      description:
        'Newest first, unless `sortBy` says otherwise. Keep the sort and the filters while you page, and start over after changing them.',
      params: { organizationId },
      query: taskListQuery,
      response: { data: z.array(taskSchema), list: true },
      handler: ({ db, params, query }) => listTasks(db, params.organizationId, query),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/tasks',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'createTask',
      summary: 'Create a task',
      description:
        'The task is `pending` and ready for a worker, or `blocked` by a prerequisite, its schedule, its children or its profile. An initiative is planned first: a run with mode `plan` of its owner profile creates the tasks below it. If somebody else adds a task below it before that, the initiative is not planned. An initiative at `maxTaskDepth` is 409, since no task could be below it. While a task with the same `dedupeKey` is open, the call returns that one.',
      params: { organizationId },
      body: newTaskSchema,
      response: { status: 201, data: taskSchema },
      errors: [
        { ...notFound, when: 'the parent or a prerequisite does not exist in this organization' },
        {
          status: 409,
          code: 'state_conflict',
          when: 'the parent takes no tasks, a limit is reached, or the dependencies form a cycle',
        },
      ],
      example: { body: newTaskExample, data: newTaskResponseExample },
      decision: { action: 'task.create', subject: 'task', id: ['task', 'id'] },
      async handler({ db, params, body, caller, decision }) {
        const args = { organizationId: params.organizationId, task: body, actor: actorOf(caller) };
        const { task } = await call(db, 'task_create', args, taskCallResult, decision);
        return task;
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/tasks/{taskRef}',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'getTask',
      summary: 'Get a task',
      description: 'With its spec, the reasons why it is blocked, and its result.',
      params: { organizationId, taskRef },
      response: { data: taskSchema },
      errors: [notFound],
      handler: ({ db, params }) => getTask(db, params.organizationId, params.taskRef),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/tasks/{taskRef}/graph',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'getTaskGraph',
      costly: true,
      summary: 'Get the hierarchy and dependencies around a task',
      description:
        'All tasks of the hierarchy that the task belongs to, the dependencies among them, and the tasks of other hierarchies that these dependencies lead to: a consistent snapshot. Inline inputs come without their `text`; get the task itself for that.',
      params: { organizationId, taskRef },
      response: { data: taskGraphSchema },
      errors: [{ status: 404, code: 'task_graph_not_found', when: notFound.when }],
      handler: ({ db, params }) => getTaskGraph(db, params.organizationId, params.taskRef),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/tasks/{taskRef}/explain',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'explainTask',
      costly: true,
      summary: 'Tell why a task is not running',
      description: EXPLAIN_DESCRIPTION,
      params: { organizationId, taskRef },
      response: { data: taskExplanationSchema },
      errors: [notFound],
      handler: ({ db, params }) => explainTask(db, params.organizationId, params.taskRef),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/tasks/{taskRef}/cancel',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'cancelTask',
      summary: 'Cancel a task and all tasks below it',
      description:
        'Ends run requests, claims, open questions and execution tokens immediately. The next heartbeat tells a worker that runs the task; a result that arrives later changes nothing. Cancelling a cancelled task has no effect.',
      params: { organizationId, taskRef },
      response: { data: taskSchema },
      errors: [notFound, { status: 409, code: 'state_conflict', when: 'the task is completed or failed' }],
      decision: { action: 'task.cancel', subject: 'task', id: ['task', 'id'] },
      async handler({ db, params, caller, decision }) {
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          actor: actorOf(caller),
        };
        const { task } = await call(db, 'task_cancel', args, taskCallResult, decision);
        return task;
      },
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/tasks/{taskRef}/retry',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'retryTask',
      summary: 'Retry failed or cancelled work',
      description:
        'Reopens the task whose failure made this one fail or be cancelled, the initiatives above that failed with it, and the tasks that were cancelled because of it. A task that a person cancelled is reopened too, with the tasks below it that this cancelled: name the task that was cancelled. A task that is blocked by a question about its result or its needs continues without an answer. Completed work, past runs and used budgets stay as they are.',
      params: { organizationId, taskRef },
      response: { data: taskSchema },
      errors: [
        notFound,
        {
          status: 409,
          code: 'state_conflict',
          when: 'nothing has failed here or was cancelled, or it was cancelled with a task above it',
        },
      ],
      decision: { action: 'task.retry', subject: 'task', id: ['task', 'id'] },
      async handler({ db, params, caller, decision }) {
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          actor: actorOf(caller),
        };
        const { task } = await call(db, 'task_retry', args, taskCallResult, decision);
        return task;
      },
    }),
    deleteDependencyEndpoint('owner', '/organizations/{organizationId}/tasks/{taskRef}/dependencies/{dependsOnRef}'),
    taskInputEndpoint('owner', '/organizations/{organizationId}/tasks/{taskRef}/inputs/{path*}'),
  ];
}
