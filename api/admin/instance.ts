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

/** The administration's part of the process. */
export type Admin = Readonly<{
  /**
   * Builds the schema, which keeps the process busy for seconds: before it serves anybody. Nothing where it is built, or where
   * nobody has a token for it. One that fails, as where the database is away, is logged and left to the next.
   */
  prepare(): Promise<void>;
  /**
   * Serves one GraphQL request. Where the schema is not built yet, it waits for that, and tries again what failed. `report` is
   * called for what nobody foresaw; once `gone` is aborted, nothing more is begun.
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

function loadRunner() {
  loadGraphileForProduction();
  return import('./run.ts');
}

/**
 * Loads what the administration is made of: for a second or more nothing else happens in the process, so before it connects to
 * anything, whose time-outs would pass meanwhile.
 */
export async function loadAdmin({ adminTokens }: Config): Promise<void> {
  if (adminTokens.length > 0) await loadRunner();
}

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
    // Not with this file: processes without administrators never need it.
    const { createRunner } = await loadRunner();
    const onError = (error: Error) => logThrottled(log, throttle, 'a connection of the administration is lost', error);
    const made = await createRunner({ url: readUrl, transitions, requestTimeoutMs, responseTimeoutMs, onError });
    log.info('the administration is ready');
    return made;
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
    async prepare() {
      if (config.adminTokens.length === 0 || closed) return;
      await runner().catch((error) => logThrottled(log, throttle, 'the administration is not ready yet', error));
    },
    run: async (request, caller, report, gone) => (await runner()).run(request, caller, report, gone),
    async close() {
      closed = true;
      const built = await building?.catch(() => undefined);
      await Promise.all([built?.close(), db.end()]);
    },
  };
}
