import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, taskRef } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import { newTaskExample, newTaskSchema } from './changes.ts';
import { EXPLAIN_DESCRIPTION, explainTask, taskExplanationSchema } from './explain.ts';
import { getTaskGraph, taskGraphSchema } from './graph.ts';
import { taskInputEndpoint } from './inputs.ts';
import { getTask, listTasks, taskListQuery } from './list.ts';
import { taskAnswer, taskSchema } from './schema.ts';

const notFound = { status: 404, code: 'task_not_found', when: 'the organization has no such task' } as const;

/** Contract 4.6, and a person's create, cancel and upload (decisions 4). */
export function taskEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/tasks',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'listTasks',
      summary: 'List tasks',
      description: 'Keep sort and filters while paging; start again after changing them.',
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
        'The task is pending, and a worker may take it, or blocked while a prerequisite, its schedule, its children or its profile hold it up. An initiative is planned first, by a run of mode plan of its owner, which makes the tasks below it; the first task that anyone else adds below it takes the place of that plan. One at maxTaskDepth is refused: nothing could be below it. An open task with the same dedupeKey is answered instead of making one.',
      params: { organizationId },
      body: newTaskSchema,
      response: { status: 201, data: taskSchema },
      errors: [
        { ...notFound, when: 'the parent or a prerequisite does not exist' },
        { status: 409, code: 'state_conflict', when: 'the parent takes no tasks, a limit is reached, or a circle' },
      ],
      example: { body: newTaskExample },
      decision: { action: 'task.create', subject: 'task', id: ['task', 'id'] },
      async handler({ db, params, body, caller, notify, decision }) {
        const args = { organizationId: params.organizationId, task: body, actor: actorOf(caller) };
        const { task } = await call(db, 'task_create', args, taskAnswer, decision);
        notify(PULL_CHANNEL);
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
      summary: 'Get the hierarchy and the dependencies around a task',
      description:
        'All tasks of the hierarchy, whichever of them is asked for, the edges between them, and the tasks of other hierarchies at the ends of edges that lead there. All from one moment. Inline inputs come without their text: ask for the task itself.',
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
      summary: 'Cancel a task and all below it',
      description:
        'Ends requests, claims, questions and capabilities at once; a worker that runs it is told by its next heartbeat, and its late result changes nothing. A repeat answers the same.',
      params: { organizationId, taskRef },
      response: { data: taskSchema },
      errors: [notFound, { status: 409, code: 'state_conflict', when: 'the task is completed or failed' }],
      decision: { action: 'task.cancel', subject: 'task', id: ['task', 'id'] },
      async handler({ db, params, caller, notify, decision }) {
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          actor: actorOf(caller),
        };
        const { task } = await call(db, 'task_cancel', args, taskAnswer, decision);
        notify(PULL_CHANNEL);
        return task;
      },
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/tasks/{taskRef}/retry',
      audience: 'owner',
      tag: 'Tasks',
      operationId: 'retryTask',
      summary: 'Retry failed work',
      description:
        'Acts on the failure that failed or cancelled this task: reopens its origin, the initiatives that failed with it and what it cancelled (contract 3.6). A task blocked by a question about its result or its needs goes on without an answer. Completed work, run history and used budgets stay.',
      params: { organizationId, taskRef },
      response: { data: taskSchema },
      errors: [
        notFound,
        { status: 409, code: 'state_conflict', when: 'nothing failed here, or a person cancelled it or a parent' },
      ],
      decision: { action: 'task.retry', subject: 'task', id: ['task', 'id'] },
      async handler({ db, params, caller, notify, decision }) {
        const args = {
          organizationId: params.organizationId,
          taskRef: params.taskRef,
          actor: actorOf(caller),
        };
        const { task } = await call(db, 'task_retry', args, taskAnswer, decision);
        notify(PULL_CHANNEL);
        return task;
      },
    }),
    taskInputEndpoint('owner', '/organizations/{organizationId}/tasks/{taskRef}/inputs/{path*}'),
  ];
}
