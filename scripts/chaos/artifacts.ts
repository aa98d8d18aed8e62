import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Violations } from './checks.ts';
import { OUTPUT_PATH, outputContent } from './protocol.ts';

const TIMEOUT_MS = 30_000;
const AT_ONCE = 8;

const page = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item), pagination: z.object({ nextCursor: z.string().nullable() }) });
const taskSchema = z.looseObject({ id: z.string(), title: z.string(), kind: z.string() });
const runSchema = z.looseObject({
  id: z.string(),
  taskId: z.string(),
  output: z.object({
    result: z.looseObject({
      artifacts: z.array(z.looseObject({ path: z.string(), size: z.number(), sha256: z.string() })),
    }),
  }),
});
type Run = z.output<typeof runSchema>;

/** What is wrong with the artifact of a successful run as the API serves it; null: nothing. */
async function faultOf(url: string, home: string, run: Run, title: string | undefined): Promise<string | null> {
  const [artifact, ...others] = run.output.result.artifacts;
  if (!artifact || others.length > 0 || artifact.path !== OUTPUT_PATH) return 'it has not exactly the one artifact';
  const response = await fetch(`${url}${home}/runs/${run.id}/artifacts/0/content`, {
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200) return `HTTP ${response.status}`;
  const digest = createHash('sha256').update(bytes).digest('hex');
  if (digest !== artifact.sha256) return `the recorded digest is ${artifact.sha256}, that of the bytes ${digest}`;
  if (bytes.byteLength !== artifact.size) return `${bytes.byteLength} bytes, ${artifact.size} are recorded`;
  if (response.headers.get('etag') !== `"${digest}"`) return `the ETag is ${response.headers.get('etag')}`;
  const { data } = outputContent.safeParse(JSON.parse(bytes.toString()));
  if (data?.title !== title) return `it belongs to ${data?.title}, not to ${title}`;
  if (data?.runId !== undefined && data.runId !== run.id) return `the run ${data.runId} wrote it`;
  return null;
}

/** Reads every artifact of every successful run through the API, as its owner would. */
export async function checkArtifacts(url: string, organizationIds: readonly string[]): Promise<Violations> {
  const wrong: unknown[] = [];

  async function list<T extends z.ZodType>(path: string, item: T): Promise<z.output<T>[]> {
    const items: z.output<T>[] = [];
    let cursor: string | null = null;
    do {
      const more: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const response = await fetch(`${url}${path}limit=100${more}`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      const { data, pagination } = page(item).parse(await response.json());
      items.push(...data);
      cursor = pagination.nextCursor;
    } while (cursor !== null);
    return items;
  }

  for (const organizationId of organizationIds) {
    const home = `/organizations/${organizationId}`;
    const tasks = await list(`${home}/tasks?kind=task&`, taskSchema);
    const titles = new Map(tasks.map(({ id, title }) => [id, title]));
    const runs = await list(`${home}/runs?status=succeeded&`, runSchema);
    const untold = new Set(titles.keys());
    for (const { taskId } of runs) untold.delete(taskId);
    for (const taskId of untold) wrong.push({ organizationId, taskId, fault: 'no successful run is listed' });
    const queue = [...runs];
    async function next(): Promise<void> {
      for (let run = queue.shift(); run; run = queue.shift()) {
        const fault = await faultOf(url, home, run, titles.get(run.taskId)).catch((error: unknown) => String(error));
        if (fault !== null) wrong.push({ organizationId, runId: run.id, fault });
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }
  return wrong.length > 0 ? { 'the artifact of a successful run is served with its digest': wrong } : {};
}
