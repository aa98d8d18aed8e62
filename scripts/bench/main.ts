import { writeOutput } from '../../engine/process/output.ts';
import { measureCommits } from './commits.ts';
import { measureDue } from './due.ts';
import { measureClones } from './git.ts';
import { measureGraph } from './graph.ts';
import { measureHttpLifecycles } from './http_lifecycle.ts';
import { measureIntegrations, seedIntegrations } from './integrations.ts';
import { measureLists } from './lists.ts';
import { measureQueue } from './queue.ts';
import { benchReporting } from './reporting/main.ts';
import { measureSearch, seedMessages } from './search.ts';
import { seedOrganizations, seedTasks } from './seed.ts';
import { measureSegments } from './segments.ts';
import { benchPool, startBenchApi, startBenchServer } from './server.ts';
import { measureSqlLifecycles, STEPS } from './sql_lifecycle.ts';
import { measureBareStreams, measureStreams, type StreamRow } from './streams.ts';
import { measureWake } from './wake.ts';

const HELP = `npm run bench [-- --quick] [-- --only sql,http,queue,wake,due,lists,integrations,git,graph,streams,search,segments,reporting] [--data FOLDER]

Measures a Postgres of its own on this machine and prints a table; --quick takes seconds instead of minutes and says less.
The data set of reporting is kept in FOLDER and used again where it is given: making it takes minutes.
`;
const WORKERS = [1, 8, 32] as const;
const SECTIONS = [
  'sql',
  'http',
  'queue',
  'wake',
  'due',
  'lists',
  'integrations',
  'git',
  'graph',
  'streams',
  'search',
  'segments',
  'reporting',
] as const;

function row(name: string, value: string, note = ''): void {
  writeOutput(process.stdout, `${name.padEnd(46)} ${value.padStart(12)}  ${note}\n`);
}

const perSecond = (value: number) => `${Math.round(value)}/s`;
const ratio = (value: number, base: number | undefined) => (base ? (value / base).toFixed(2) : '-');

const milliseconds = (p50: number, p99: number) => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
const times = ({ p50, p99, committed }: StreamRow) =>
  committed ? `from the commit ${milliseconds(committed.p50, committed.p99)}` : milliseconds(p50, p99);

async function main(): Promise<void> {
  const quick = process.argv.includes('--quick');
  const only = process.argv[process.argv.indexOf('--only') + 1]?.split(',');
  const wanted = (section: (typeof SECTIONS)[number]) => !process.argv.includes('--only') || only?.includes(section);
  const data = process.argv.includes('--data') ? process.argv[process.argv.indexOf('--data') + 1] : undefined;
  const seconds = quick ? 2 : 10;
  const server = await startBenchServer();
  const db = benchPool(server);
  try {
    writeOutput(process.stdout, `Postgres ${server.version}, Node ${process.version}\n\n`);
    const { organizationIds } = await seedOrganizations(db, 20);
    const refill = async () => {
      for (const id of organizationIds) await seedTasks(db, id, quick ? 500 : 2_000, 'pending');
      await db.query('vacuum analyze');
    };
    const limit = new Map<number, number>();
    if (wanted('sql') || wanted('http')) {
      const { tool, byClients } = await measureCommits(server.url, WORKERS, seconds);
      for (const [clients, rate] of byClients) {
        limit.set(clients, rate);
        row(`commits, ${tool}, ${clients} clients`, perSecond(rate));
      }
    }
    if (wanted('sql')) {
      for (const workers of WORKERS) {
        await refill();
        const lifecycles = await measureSqlLifecycles(server.url, workers, seconds);
        const base = limit.get(workers);
        row(
          `lifecycles by SQL, ${workers} workers`,
          perSecond(lifecycles),
          `${perSecond(lifecycles * STEPS)} transactions, ${ratio(lifecycles * STEPS, base)} of the commits`,
        );
      }
    }
    if (wanted('http')) {
      const api = await startBenchApi(server);
      for (const workers of WORKERS) {
        await refill();
        const lifecycles = await measureHttpLifecycles(api.url, workers, seconds);
        const base = limit.get(workers);
        row(
          `lifecycles over HTTP, ${workers} workers`,
          perSecond(lifecycles),
          `${perSecond(lifecycles * STEPS)} requests, ${ratio(lifecycles * STEPS, base)} of the commits`,
        );
      }
      await api.stop();
    }
    if (wanted('queue'))
      row('no-op jobs of the queue', perSecond(await measureQueue(server.url, quick ? 2_000 : 20_000)));
    if (wanted('wake')) {
      for (const everyMs of [20, 5]) {
        const [organizationId] = (await seedOrganizations(db, 1)).organizationIds;
        // Nothing ends what is claimed: all of it, and what warms up, has to fit into the organization's capacity.
        const tasks = quick ? 100 : 900;
        const wake = await measureWake(server, organizationId ?? '', { processes: 4, waiting: 200, tasks, everyMs });
        row(
          `commit to a waiting worker, one every ~${everyMs} ms`,
          `p50 ${wake.p50} ms`,
          `p99 ${wake.p99} ms; ${wake.waiting} waiting over ${wake.processes} processes`,
        );
      }
    }
    if (wanted('due')) {
      const size = quick
        ? { stale: 3_000, organizations: 100, samples: 5 }
        : { stale: 29_000, organizations: 1_000, samples: 20 };
      const due = await measureDue(server, db, size);
      row(
        'end of a lease to its discovery',
        `p50 ${due.p50.toFixed(0)} ms`,
        `at most ${due.max.toFixed(0)} ms; ${size.stale} ended of another of ${size.organizations} organizations, ` +
          `of which ${perSecond(due.moved)} were moved`,
      );
    }
    if (wanted('lists')) {
      const [small, large] = (await seedOrganizations(db, 2)).organizationIds;
      const many = quick ? 100_000 : 1_000_000;
      await seedTasks(db, small ?? '', 1_000, 'completed');
      await seedTasks(db, large ?? '', many, 'completed');
      await db.query('vacuum analyze');
      const api = await startBenchApi(server);
      await measureLists(api.url, large ?? '', 0.2);
      const few = await measureLists(api.url, small ?? '', seconds / 2);
      const lots = await measureLists(api.url, large ?? '', seconds / 2);
      for (const [index, { query, perSecond: rate }] of few.entries()) {
        const big = lots[index]?.perSecond ?? 0;
        row(
          `list by ${query}`,
          perSecond(rate),
          `${perSecond(big)} at ${many} tasks, ${ratio(rate, big)} times the cost`,
        );
      }
      await api.stop();
    }
    if (wanted('integrations')) {
      const [small = '', large = ''] = (await seedOrganizations(db, 2)).organizationIds;
      await seedIntegrations(db, small, 10);
      await seedIntegrations(db, large, 10_000);
      await db.query('vacuum analyze');
      const api = await startBenchApi(server);
      await measureIntegrations(api.url, large, 0.2);
      const few = await measureIntegrations(api.url, small, seconds / 2);
      const many = await measureIntegrations(api.url, large, seconds / 2);
      row('list of integrations', perSecond(few), `${perSecond(many)} of 10,000, ${ratio(few, many)} times the cost`);
      await api.stop();
    }
    if (wanted('git')) {
      const { originMs, gatewayMs, peakMegabytes } = await measureClones(100, quick ? 3 : 9);
      row(
        'clone of 100 MB through the gateway',
        `${gatewayMs.toFixed(0)} ms`,
        `${originMs.toFixed(0)} ms from its origin, ratio ${ratio(gatewayMs, originMs)}; ${peakMegabytes.toFixed(0)} MB more at most`,
      );
    }
    if (wanted('graph')) {
      const [organizationId = ''] = (await seedOrganizations(db, 1)).organizationIds;
      const size = { tasks: 2_000, edges: 5_000 };
      const api = await startBenchApi(server);
      for (const { name, p50, max } of await measureGraph(db, api.url, organizationId, size, quick ? 2 : 10)) {
        row(
          `${name}, a root with ${size.tasks} tasks`,
          `${p50.toFixed(0)} ms`,
          `at most ${max.toFixed(0)} ms; ${size.edges} edges`,
        );
      }
      await api.stop();
    }
    if (wanted('streams')) {
      const options = quick
        ? { streams: 200, perSecond: 50, seconds: 3 }
        : { streams: 2_000, perSecond: 200, seconds: 30 };
      for (const [name, one] of [
        ['of the API', await measureStreams(server, db, 'http', options)],
        ['of the API, written by SQL', await measureStreams(server, db, 'sql', options)],
        ['of a bare server', await measureBareStreams(options)],
      ] as const) {
        row(
          `${one.streams} event streams ${name}`,
          `${one.kibibytes.toFixed(1)} KiB each`,
          `${times(one)} at ${options.perSecond} revisions/s (${one.received} seen); ` +
            `${one.processor.toFixed(2)} ms of processor each` +
            (Number.isNaN(one.written99)
              ? ''
              : `, writers get their response within ${one.written99.toFixed(0)} ms at p99`),
        );
      }
    }
    if (wanted('search')) {
      const [organizationId = ''] = (await seedOrganizations(db, 1)).organizationIds;
      const many = quick ? 10_000 : 100_000;
      await seedMessages(db, organizationId, many);
      await db.query('vacuum analyze');
      for (const { name, found, p50, max } of await measureSearch(db, organizationId, 20)) {
        row(
          `search ${name}`,
          `${p50.toFixed(1)} ms`,
          `at most ${max.toFixed(1)} ms; ${found} of ${many / 20} chats, a page is 50`,
        );
      }
    }
    if (wanted('segments')) {
      const many = quick ? 10_000 : 100_000;
      const one = await measureSegments(many);
      row(
        `a segment of ${many} facts, written`,
        `${one.writeMs.toFixed(0)} ms`,
        `read in ${one.readMs.toFixed(0)} ms; ${one.megabytes.toFixed(1)} MB, ${one.peakMegabytes.toFixed(0)} MB of memory ` +
          `at most, ${one.blockedMs.toFixed(0)} ms at most without a turn for other work`,
      );
    }
  } finally {
    await db.end();
    await server.stop();
  }
  if (wanted('reporting')) await benchReporting(row, quick, data);
}

if (process.argv.includes('--help')) writeOutput(process.stdout, HELP);
else await main();
