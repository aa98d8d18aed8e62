import path from 'node:path';
import { watch } from 'chokidar';

/** What a change makes necessary. */
export type Work = Readonly<{ migrate: boolean; api: boolean; jobs: boolean }>;

const WATCHED = ['api', 'engine', 'jobs', 'sql'];
/** Editors and `git checkout` write several files at once. */
const QUIET_MS = 150;

/** By the path of a file below the project's folder; undefined: nothing has to be done. */
export function workOf(file: string): Work | undefined {
  const [folder] = file.split(path.sep);
  const extension = path.extname(file);
  if (extension === '.sql' || (folder === 'sql' && extension === '.json'))
    return { migrate: true, api: true, jobs: true };
  if (extension !== '.ts' && extension !== '.json') return undefined;
  const schema =
    file.startsWith(path.join('engine', 'db', 'schema')) || file === path.join('engine', 'db', 'migrate.ts');
  return { migrate: schema, api: folder !== 'jobs', jobs: folder !== 'api' };
}

/**
 * Calls `onChange` with the files that changed, when no further one did for a moment; the next call waits until it has
 * finished. Returns how to stop.
 */
export async function watchChanges(
  root: string,
  onChange: (files: readonly string[]) => Promise<void>,
): Promise<() => Promise<void>> {
  const changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  const watcher = watch(WATCHED, { cwd: root, ignoreInitial: true });

  function schedule(): void {
    clearTimeout(timer);
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
  await new Promise<void>((resolve) => watcher.once('ready', () => resolve()));
  return async () => {
    clearTimeout(timer);
    await watcher.close();
    await running;
  };
}
