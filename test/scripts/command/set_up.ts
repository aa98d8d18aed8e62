import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Test } from 'tap';
import { builtinCatalog, catalogRevision } from '../../../engine/catalog/index.ts';
import { command } from '../../../scripts/command/command.ts';
import { type Ask, createStop } from '../../../scripts/command/stop.ts';
import { startWorker } from '../../../scripts/demo/worker.ts';
import { SERVICE_TOKEN, startTestApp, type TestApp } from '../../support/app.ts';
import { openFolder } from '../../support/folders.ts';

export type Ended = Readonly<{ status: number; out: string; err: string }>;
/** A call that goes on. */
export type Begun = Readonly<{
  ended: Promise<Ended>;
  out: () => string;
  err: () => string;
  /** As Ctrl-C does. */
  interrupt: () => void;
}>;

/** The command inside of this process, on a screen of 80 columns without styles. */
export function begin(environment: NodeJS.ProcessEnv, ...argv: string[]): Begun {
  return beginAsking(undefined, environment, ...argv);
}

/** The same with somebody at the terminal. */
export function beginAsking(ask: Ask | undefined, environment: NodeJS.ProcessEnv, ...argv: string[]): Begun {
  let out = '';
  let err = '';
  const stop = createStop();
  const ended = command({
    argv,
    environment,
    settings: {},
    streams: {
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
      columns: 80,
      styleOut: (_, text) => text,
      styleErr: (_, text) => text,
    },
    stop,
    ask,
  });
  return {
    ended: ended.then((status) => ({ status, out, err })),
    out: () => out,
    err: () => err,
    interrupt: stop.interrupt,
  };
}

/** The API with the built-in catalog, as npm start has it. */
export async function startWithCatalog(t: Test, options: Parameters<typeof startTestApp>[1] = {}): Promise<TestApp> {
  const app = await startTestApp(t, options);
  await publishCatalog(app);
  return app;
}

export async function publishCatalog({ database }: TestApp): Promise<void> {
  const catalog = builtinCatalog();
  await database.owner.query('select app.agent_catalog_publish($1, $2)', [catalogRevision(catalog), catalog]);
}

/** An organization of its own, the command for it, and workers. */
export async function setUp(t: Test, app: TestApp, url = app.url) {
  const environment: Record<string, string> = { BUSINESS_RUNNER_URL: url.replace(/\/$/, '') };
  const slug = `o-${crypto.randomUUID()}`;
  const call = (...argv: string[]) => begin(environment, ...argv).ended;
  const created = await call('org', 'create', 'Lamp Studio', '--slug', slug, '--json');
  t.equal(created.status, 0, created.err);
  const organizationId: string = JSON.parse(created.out).id;
  environment['BUSINESS_RUNNER_ORGANIZATION'] = slug;
  const folder = await openFolder(t);
  const tokenFile = path.join(folder, 'token');
  await writeFile(tokenFile, SERVICE_TOKEN);
  const target = { url: app.url, tokenFile, organizationId, scratch: path.join(folder, 'runs') };
  const worker = (exec: string, ...argv: string[]) => {
    const lines: string[] = [];
    const started = startWorker(target, (line) => void lines.push(line), '--exec', exec, ...argv);
    t.teardown(() => started.end());
    return { ...started, lines };
  };
  return {
    environment,
    slug,
    organizationId,
    folder,
    call,
    begin: (...argv: string[]) => begin(environment, ...argv),
    worker,
  };
}
