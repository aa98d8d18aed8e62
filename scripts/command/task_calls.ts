import type { OwnerApi } from './api.ts';
import { withLocalTimes } from './output.ts';
import {
  type Action,
  actionSchema,
  explanationSchema,
  type InboxItem,
  inboxItemSchema,
  type LogEntry,
  logPageSchema,
  type Run,
  runSchema,
  type Task,
  taskSchema,
} from './schemas.ts';

const MOST_RUNS = 200;
const PAGE = 100;

/** The tasks of one organization. */
export type TaskCalls = ReturnType<typeof taskCalls>;

/** @param home of the organization: `/organizations/{id}` */
export function taskCalls(api: OwnerApi, home: string) {
  const at = (ref: string, verb = '') => {
    const named = /^[ti]-\d+$/i.test(ref) ? ref.toUpperCase() : ref;
    return `${home}/tasks/${encodeURIComponent(named)}${verb}`;
  };
  const page = (run: Run, query: string) => api.get(logPageSchema, `${home}/runs/${run.id}/logs?limit=${PAGE}${query}`);

  /** All that there is, the oldest entry first: pages lead back from the latest one. */
  async function wholeLog(run: Run): Promise<LogEntry[]> {
    const entries: LogEntry[] = [];
    for (let query = ''; ; ) {
      const { items, pagination } = await page(run, query);
      entries.unshift(...items);
      if (!pagination.hasOlder || pagination.oldestSequence === null) return entries;
      query = `&before=${pagination.oldestSequence}`;
    }
  }

  async function newerLog(run: Run, after: number): Promise<LogEntry[]> {
    const entries: LogEntry[] = [];
    for (let last = after; ; ) {
      const { items, pagination } = await page(run, `&after=${last}`);
      entries.push(...items);
      if (!pagination.hasNewer || pagination.newestSequence === null) return entries;
      last = pagination.newestSequence;
    }
  }

  return {
    home,
    url: api.url,
    create: (body: object): Promise<Task> => api.post(taskSchema, `${home}/tasks`, body),
    get: (ref: string): Promise<Task> => api.get(taskSchema, at(ref)),
    list: (query: Readonly<Record<string, string | undefined>>, limit: number): Promise<Task[]> =>
      api.list(taskSchema, `${home}/tasks`, query, limit),
    cancel: (ref: string): Promise<Task> => api.post(taskSchema, at(ref, '/cancel')),
    retry: (ref: string): Promise<Task> => api.post(taskSchema, at(ref, '/retry')),
    /** Why it does not run, in a sentence, and how to start the worker that it may lack. */
    why: async (ref: string): Promise<string[]> => {
      const { summary, causes } = await api.get(explanationSchema, at(ref, '/explain'));
      const needsWorker = causes.some(({ kind }) => kind === 'worker');
      return [withLocalTimes(summary), ...(needsWorker ? ["start one: npm run worker -- --exec 'COMMAND'"] : [])];
    },
    /** The first one first. */
    runs: async (task: Task): Promise<Run[]> =>
      (await api.list(runSchema, `${home}/runs`, { taskId: task.id }, MOST_RUNS)).toReversed(),
    /** The entries of a run's log, those after a sequence where one is given. */
    log: (run: Run, after?: number): Promise<LogEntry[]> =>
      after === undefined ? wholeLog(run) : newerLog(run, after),
    question: (id: string): Promise<InboxItem> => api.get(inboxItemSchema, `${home}/human-inbox/${id}`),
    action: (id: string): Promise<Action> => api.get(actionSchema, `${home}/actions/${id}`),
    content: (path: string): Promise<string> => api.text(path),
  };
}
