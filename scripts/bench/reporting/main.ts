import { benchPool, startBenchApi, startBenchServer } from '../server.ts';
import { measureAdminLists, type PageTime } from './admin_lists.ts';
import { reportedOrganizations, seedReporting } from './seed.ts';
import { measureReports, measureSummaries, type Timing } from './summaries.ts';

export type Print = (name: string, value: string, note?: string) => void;

const milliseconds = (value: number) => `${value.toFixed(value < 100 ? 1 : 0)} ms`;

function timingNote({ processorMs, rows }: Timing): string {
  return `${processorMs === undefined ? '' : `${processorMs} ms of processor; `}${rows} rows`;
}

/** The slowest order of each list. */
function slowest(times: readonly PageTime[]): readonly PageTime[] {
  return times.filter((time, index) => times.findIndex(({ list }) => list === time.list) === index);
}

/**
 * The reads of analysts and administrators over a year of 100 organizations, on a server of its own. `kept` is a folder for the
 * data set: it is filled once, and measured again the next time.
 */
export async function benchReporting(print: Print, quick: boolean, kept: string | undefined): Promise<void> {
  const server = await startBenchServer(kept);
  const db = benchPool(server);
  try {
    const rounds = quick ? 3 : 10;
    let organizations = await reportedOrganizations(db);
    if (organizations.length === 0) {
      const started = performance.now();
      const runs = quick ? 20_000 : 1_000_000;
      await seedReporting(db, { organizations: 100, runs, largestShare: 0.1, messages: quick ? 20 : 100 });
      print(`${runs} runs of 100 organizations, made`, `${Math.round((performance.now() - started) / 1000)} s`);
      organizations = await reportedOrganizations(db);
    }
    const [largest, typical] = [organizations[0], organizations[Math.floor(organizations.length / 2)]];
    if (!largest || !typical) throw new Error('the data set has no organizations');
    for (const { id, runs } of [typical, largest]) {
      for (const timing of await measureSummaries(server.url, id, rounds)) {
        print(`summary ${timing.name}, ${runs} runs`, milliseconds(timing.ms), timingNote(timing));
      }
      for (const { name, ms, rows } of await measureReports(server.url, id)) {
        print(`npm run report -- ${name}, ${runs} runs`, milliseconds(ms), `${rows} lines`);
      }
    }
    const api = await startBenchApi(server);
    for (const [name, id] of [
      ['all', undefined],
      ['one', largest.id],
    ] as const) {
      for (const { list, order, p50, max, rows } of slowest(await measureAdminLists(api.url, id, rounds))) {
        print(`admin ${list}, ${name}`, milliseconds(p50), `at most ${milliseconds(max)}; ${order}, ${rows} rows`);
      }
    }
    await api.stop();
  } finally {
    await db.end();
    await server.stop();
  }
}
