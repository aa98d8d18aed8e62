import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { addAnalyst, removeAnalyst } from '../../analyst/logins.ts';
import { REPORTS } from '../../report/options.ts';
import { median } from '../measure.ts';

const SUMMARIES = [
  'throughput_by_day',
  'cost_by_initiative',
  'cost_outside_initiatives',
  'waiting_for_people',
  'contract_failures',
  'queue_waits',
] as const;
const reportScript = fileURLToPath(new URL('../../report.ts', import.meta.url));

/** `processorMs` says more than the time on a machine that others use too; undefined where the system does not tell. */
export type Timing = Readonly<{ name: string; ms: number; processorMs: number | undefined; rows: number }>;

/** Processor time of a process so far, by Linux, in steps of 10 ms. */
function processorMs(pid: number): number | undefined {
  try {
    const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    const [user, system] = fields.split(' ').slice(11, 13).map(Number);
    return ((user ?? 0) + (system ?? 0)) * 10;
  } catch {
    return undefined;
  }
}

/** Works with the login of an analyst that reads one organization, which goes afterwards. */
async function asAnalyst<T>(url: string, organizationId: string, work: (analystUrl: string) => Promise<T>): Promise<T> {
  const owner = new pg.Client({ connectionString: url });
  await owner.connect();
  const name = `bench_${randomBytes(6).toString('hex')}`;
  try {
    const { password } = await addAnalyst(owner, name, { all: false, organizationIds: [organizationId] }, () => {});
    const login = new URL(url);
    login.username = name;
    login.password = password ?? '';
    return await work(login.href);
  } finally {
    await removeAnalyst(owner, name);
    await owner.end();
  }
}

/** Every ready summary in full, as an analyst asks for it; medians of the rounds after the first. */
export function measureSummaries(url: string, organizationId: string, rounds: number): Promise<readonly Timing[]> {
  return asAnalyst(url, organizationId, async (analystUrl) => {
    const client = new pg.Client({ connectionString: analystUrl });
    await client.connect();
    const { rows: backend } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const pid = backend[0]?.pid ?? 0;
    const timings: Timing[] = [];
    for (const name of SUMMARIES) {
      const samples: { ms: number; processor: number | undefined; rows: number }[] = [];
      for (let round = 0; round <= rounds; round += 1) {
        const [before, started] = [processorMs(pid), performance.now()];
        const { rowCount } = await client.query(`select * from reporting.${name} where organization_id = $1`, [
          organizationId,
        ]);
        const [ms, after] = [performance.now() - started, processorMs(pid)];
        const processor = before === undefined || after === undefined ? undefined : after - before;
        if (round > 0) samples.push({ ms, processor, rows: rowCount ?? 0 });
      }
      const processors = samples.flatMap(({ processor }) => (processor === undefined ? [] : [processor]));
      timings.push({
        name,
        ms: median(samples.map(({ ms }) => ms)),
        processorMs: processors.length > 0 ? median(processors) : undefined,
        rows: samples[0]?.rows ?? 0,
      });
    }
    await client.end();
    return timings;
  });
}

/** `npm run report` as a whole, from the start of its process to its end, over the whole year. */
export function measureReports(url: string, organizationId: string): Promise<readonly Timing[]> {
  return asAnalyst(url, organizationId, async (analystUrl) => {
    const timings: Timing[] = [];
    for (const name of REPORTS) {
      const started = performance.now();
      const child = spawn(process.execPath, [reportScript, '--no-env-file', name, '--since', '52w'], {
        env: { PATH: process.env['PATH'], DATABASE_URL: analystUrl },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let lines = 0;
      child.stdout.on('data', (chunk: Buffer) => {
        lines += chunk.toString().split('\n').length - 1;
      });
      const [status] = await once(child, 'close');
      if (status !== 0) throw new Error(`npm run report -- ${name} ended with ${status}`);
      timings.push({ name, ms: performance.now() - started, processorMs: undefined, rows: lines });
    }
    return timings;
  });
}
