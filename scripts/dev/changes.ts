import path from 'node:path';
import { watch } from 'chokidar';

/** What a change makes necessary. */
export type Work = Readonly<{ migrate: boolean; api: boolean; jobs: boolean }>;

const WATCHED = ['api', 'engine', 'jobs', 'sql'];
/** Editors and `git checkout` write several files at once. */
const QUIET_MS = 150;
/** `npm run generate` writes it from the database; nothing reads it. */
const DESCRIPTION = path.join('sql', 'schema.sql');

/** By the path of a file below the project's folder; undefined: nothing has to be done. */
export function workOf(file: string): Work | undefined {
  const [folder] = file.split(path.sep);
  const extension = path.extname(file);
  if (file === DESCRIPTION) return undefined;
  if (extension === '.sql' || (folder === 'sql' && extension === '.json'))
    return { migrate: true, api: true, jobs: true };
  if (extension !== '.ts' && extension !== '.json') return undefined;
  const schema =
    file.startsWith(path.join('engine', 'db', 'schema')) || file === path.join('engine', 'db', 'migrate.ts');
  return { migrate: schema, api: folder !== 'jobs', jobs: folder !== 'api' };
}

/**
 * Calls `onChange` with the files that changed, when no further one did for a moment; the next call waits until it has
 * finished. Returns how to stop, after which nothing more is called. `onError` gets the first of all errors, such as ENOSPC for
 * each file beyond the system's limit: changes there are not seen.
 */
export async function watchChanges(
  root: string,
  onChange: (files: readonly string[]) => Promise<void>,
  onError: (error: Error) => void,
): Promise<() => Promise<void>> {
  const changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let failed = false;
  let stopped = false;
  const watcher = watch(WATCHED, { cwd: root, ignoreInitial: true });

  function schedule(): void {
    clearTimeout(timer);
    if (stopped) return;
    timer = setTimeout(() => {
      if (running || changed.size === 0) return;
      const files = [...changed].sort();
      changed.clear();
      running = onChange(files).finally(() => {
        running = undefined;
        schedule();
      });
    }, QUIET_MS);
  }

  watcher.on('all', (_event, file) => {
    if (!workOf(file)) return;
    changed.add(file);
    schedule();
  });
  watcher.on('error', (error) => {
    if (!failed) onError(error as Error);
    failed = true;
  });
  await new Promise<void>((resolve) => watcher.once('ready', () => resolve()));
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await watcher.close();
    await running;
  };
}
