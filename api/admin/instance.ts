import type { Logger } from 'pino';
import { type Config, loadGraphileForProduction } from '../../engine/config.ts';
import { openDatabase } from '../../engine/db/database.ts';
import { DatabaseUnavailableError } from '../../engine/db/errors.ts';
import { openPool, roleUrl } from '../../engine/db/pool.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import type { AdminContext, Report } from './context.ts';
import type { GraphqlRequest, GraphqlResponse, Runner } from './run.ts';
import { REQUEST_TIMEOUT_MS, RESPONSE_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from './timeouts.ts';
import { adminTransitions } from './transitions.ts';

/** The administration's part of the process: nothing is opened before somebody asks. */
export type Admin = Readonly<{
  /**
   * Serves one GraphQL request. The first one builds the schema, those that come meanwhile wait for the same build, and
   * one that failed is tried again by the next. `report` is called for what nobody foresaw; once `gone` is
   * aborted, nothing more is begun.
   */
  run(request: GraphqlRequest, caller: AdminContext, report: Report, gone?: AbortSignal): Promise<GraphqlResponse>;
  close(): Promise<void>;
}>;

const ROLE = { role: 'runner_admin', applicationName: 'business-runner admin' } as const;
// A page is read faster by one than by several that have to be started; and what runs goes before who looks at it.
const READER = { default_transaction_read_only: 'on', max_parallel_workers_per_gather: '0' } as const;
const WRITERS = 2;
const MAX_WAITING = 64;

type AdminOptions = Readonly<{
  config: Config;
  url: string;
  /** As of `openDatabase`. */
  onWakes: (wakes: string) => void;
  log: Logger;
  requestTimeoutMs?: number;
  responseTimeoutMs?: number;
}>;

export function openAdmin(options: AdminOptions): Admin {
  const { config, url, onWakes, log } = options;
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS, responseTimeoutMs = RESPONSE_TIMEOUT_MS } = options;
  const throttle = createThrottle();
  const db = openDatabase({
    open: () => openPool(url, { ...ROLE, size: WRITERS, statementTimeoutMs: STATEMENT_TIMEOUT_MS }),
    size: WRITERS,
    maxWaiting: MAX_WAITING,
    responseTimeoutMs,
    onWakes,
  });
  const transitions = adminTransitions({ db, config });
  const readUrl = roleUrl(url, { ...ROLE, statementTimeoutMs: STATEMENT_TIMEOUT_MS, settings: READER });
  let building: Promise<Runner> | undefined;
  let closed = false;

  async function build(): Promise<Runner> {
    loadGraphileForProduction();
    // Loaded here, since it takes a second and most processes never need it.
    const { createRunner } = await import('./run.ts');
    const onError = (error: Error) => logThrottled(log, throttle, 'a connection of the administration is lost', error);
    return createRunner({ url: readUrl, transitions, requestTimeoutMs, responseTimeoutMs, onError });
  }

  function runner(): Promise<Runner> {
    if (closed) return Promise.reject(new DatabaseUnavailableError('the administration is closed'));
    if (building) return building;
    const attempt = build();
    building = attempt;
    attempt.catch(() => {
      building = undefined;
    });
    return attempt;
  }

  return {
    run: async (request, caller, report, gone) => (await runner()).run(request, caller, report, gone),
    async close() {
      closed = true;
      const built = await building?.catch(() => undefined);
      await Promise.all([built?.close(), db.end()]);
    },
  };
}
