import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { client } from './http_lifecycle.ts';
import { percentile } from './measure.ts';
import type { BenchServer } from './server.ts';
import { startBenchApi } from './server.ts';

const pulled = z.object({
  data: z.object({ items: z.array(z.object({ task: z.object({ createdAt: z.string() }) })) }),
});

export type Wake = Readonly<{ waiting: number; processes: number; published: number; p50: number; p99: number }>;

/** Made first and not counted: the processes have just started. */
const WARM_UP = 40;

/**
 * From the commit of a task to the response of a pull that waits for it, in ms. Counted from the task's `createdAt`, which is
 * the start of its transaction: the commit's own time is in it. All waiters keep waiting, each for a time of its own
 * choice, as workers of any real fleet do: 200 that all come back in the same moment measure the machine's HTTP. A task is
 * made every `everyMs`.
 */
export async function measureWake(
  server: BenchServer,
  organizationId: string,
  options: Readonly<{ processes: number; waiting: number; tasks: number; everyMs: number }>,
): Promise<Wake> {
  const apis = await Promise.all(Array.from({ length: options.processes }, () => startBenchApi(server, 4)));
  const clients = apis.map((api) => client(api.url, options.waiting + 8));
  const samples: number[] = [];
  let over = false;
  const waiters = Array.from({ length: options.waiting }, async (_, index) => {
    const { post } = clients[index % clients.length] as (typeof clients)[number];
    while (!over) {
      const body = {
        workerId: `w${index}`,
        waitMs: Math.round(2_000 + Math.random() * 8_000),
        organizationIds: [organizationId],
      };
      const response = await post('/internal/run-requests/pull', body);
      const now = Date.now();
      for (const item of pulled.parse(response.body).data.items) samples.push(now - Date.parse(item.task.createdAt));
    }
  });
  await sleep(1_000);
  const maker = clients[0] as (typeof clients)[number];
  for (let made = 0; made < WARM_UP + options.tasks; made += 1) {
    await maker.post(`/organizations/${organizationId}/tasks`, { title: 'wake', ownerProfileKey: 'p0' });
    await sleep(options.everyMs);
  }
  while (samples.length < WARM_UP + options.tasks) await sleep(50);
  over = true;
  const counted = samples.slice(WARM_UP);
  await Promise.all(waiters);
  for (const { close } of clients) close();
  await Promise.all(apis.map((api) => api.stop()));
  return {
    waiting: options.waiting,
    processes: options.processes,
    published: options.tasks,
    p50: percentile(counted, 0.5),
    p99: percentile(counted, 0.99),
  };
}
