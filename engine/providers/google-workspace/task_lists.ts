import { z } from 'zod';
import { quoted } from '../texts.ts';
import { covers } from './services.ts';
import { read, readPage, urlOf, write, writeJson } from './site.ts';

const dateTime = z.iso.datetime({ offset: true });
const tasklist = z
  .string()
  .regex(/^@?[A-Za-z0-9_-]{1,200}$/)
  .optional()
  .describe('without it the default list');
/** More than that Google refuses. */
const maxResults = z.int().min(1).max(100).optional();

const pathOf = (list: string | undefined) => `/tasks/v1/lists/${encodeURIComponent(list ?? '@default')}/tasks`;

const task = z.object({
  id: z.string(),
  title: z.string().optional(),
  notes: z.string().optional(),
  status: z.string().optional(),
  due: z.string().optional(),
  completed: z.string().optional(),
  updated: z.string().optional(),
  parent: z.string().optional(),
  position: z.string().optional(),
  webViewLink: z.string().optional(),
});
const list = z.object({ id: z.string(), title: z.string().optional(), updated: z.string().optional() });
const pageOf = <S extends z.ZodType>(item: S) =>
  z.object({ items: z.array(item).default([]), nextPageToken: z.string().optional() });

export const taskLists = [
  read({
    key: 'google_workspace.tasks.tasklists.list',
    title: 'List task lists',
    description: 'Lists the lists of tasks.',
    scopes: covers.tasksRead,
    input: { maxResults },
    async read(call) {
      const url = urlOf('tasks', '/tasks/v1/users/@me/lists', call.args);
      const { nextPageToken, items } = await readPage(call, 'tasks', url, pageOf(list));
      return { data: { items }, nextCursor: nextPageToken };
    },
  }),
  read({
    key: 'google_workspace.tasks.tasks.list',
    title: 'List tasks',
    description: 'Lists the tasks of a list.',
    scopes: covers.tasksRead,
    input: {
      tasklist,
      maxResults,
      dueMin: dateTime.optional(),
      dueMax: dateTime.optional(),
      updatedMin: dateTime.optional(),
      showCompleted: z.boolean().optional(),
      showHidden: z.boolean().optional(),
    },
    async read(call) {
      const { tasklist: of, ...query } = call.args;
      const { nextPageToken, items } = await readPage(call, 'tasks', urlOf('tasks', pathOf(of), query), pageOf(task));
      return { data: { items }, nextCursor: nextPageToken };
    },
  }),
  // Google Tasks keeps no mark that nobody sees: no look-up.
  write({
    key: 'google_workspace.tasks.tasks.create',
    title: 'Create a task',
    description: 'Creates a task in a list.',
    risk: 'low',
    scopes: covers.tasksWrite,
    input: {
      tasklist,
      title: z.string().min(1).max(1_000),
      notes: z.string().max(8_000).optional(),
      due: dateTime.optional().describe('its day; Google keeps no time'),
    },
    summary: ({ args }) =>
      [
        `Create the task ${quoted(args.title)} in ${args.tasklist === undefined ? 'the default list' : `list ${args.tasklist}`}`,
        ...(args.due === undefined ? [] : [`due ${args.due.slice(0, 10)}`]),
        ...(args.notes === undefined ? [] : [`notes: ${quoted(args.notes, 300)}`]),
      ].join('; '),
    execute({ args: { tasklist: of, ...body }, ...call }) {
      const small = task.pick({ id: true, status: true, webViewLink: true });
      return writeJson(call, 'tasks', { method: 'POST', url: urlOf('tasks', pathOf(of)), body }, small);
    },
  }),
];
