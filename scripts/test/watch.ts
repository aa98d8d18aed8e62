import { watch as watchFolder } from 'node:fs';
import path from 'node:path';

/** Where files change that tests depend on. */
const WATCHED = ['api', 'engine', 'examples', 'jobs', 'scripts', 'sql', 'test'];
const SOURCE = /\.(ts|sql|json|mjs)$/;
/** An editor writes a file in several steps, and a branch that is checked out many files. */
const SETTLED_MS = 150;

/** Runs now, and again after each change; one run at a time, and what changes during one is seen by the next. */
export async function watch(root: string, run: () => Promise<boolean>, print: (text: string) => void): Promise<void> {
  let changed = Promise.withResolvers<string>();
  let failed = false;
  for (const folder of WATCHED) {
    const watcher = watchFolder(path.join(root, folder), { recursive: true }, (_, name) => {
      if (name && SOURCE.test(name)) changed.resolve(path.join(folder, name));
    });
    // Such as ENOSPC, for each file beyond the system's limit.
    watcher.on('error', (error) => {
      if (!failed) print(`\nChanges of some files are not seen: ${error.message}`);
      failed = true;
    });
  }
  for (;;) {
    await run();
    print('\nWaiting for a change; Ctrl-C ends it.');
    const file = await changed.promise;
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
    changed = Promise.withResolvers();
    print(`\n${file} has changed`);
  }
}
