// Runs test files one after another in this process, as scripts/test/test_process.ts sends their names. All of them share
// what they import; each has a `t` of its own, which `import t from 'tap'` gives it.
import { registerHooks } from 'node:module';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { z } from 'zod';

const SCHEME = 'tap-of:';
const ROOTS = Symbol.for('business-runner test roots');
/** Work that ends by itself within moments, or what Node keeps for the next read of a file. */
const PASSING = new Set(['Immediate', 'FSReqCallback', 'FSReqPromise', 'FileHandleCloseReq', 'FileHandleReadWrap']);

const orderSchema = z.object({ file: z.string(), timeoutS: z.number(), closeWithinMs: z.number() });
/** Without a file to run: the end. */
const commandSchema = z.object({ run: orderSchema.optional() });

const roots = new Map<string, Test>();
Object.assign(globalThis, { [ROOTS]: roots });

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'tap' || !context.parentURL || !roots.has(context.parentURL)) return next(specifier, context);
    return { url: `${SCHEME}${context.parentURL}`, format: 'module', shortCircuit: true };
  },
  load(url, context, next) {
    if (!url.startsWith(SCHEME)) return next(url, context);
    const root = `globalThis[Symbol.for(${JSON.stringify(ROOTS.description)})].get(${JSON.stringify(url.slice(SCHEME.length))})`;
    return { format: 'module', shortCircuit: true, source: `export default ${root};` };
  },
});

/** What keeps this process running, by kind. */
function active(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (!PASSING.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** What is active now and was not before, once that had the time to close. */
async function leftOpen(before: ReadonlyMap<string, number>, withinMs: number): Promise<string[]> {
  for (const end = Date.now() + withinMs; ; ) {
    const more = [...active()].filter(([kind, count]) => count > (before.get(kind) ?? 0));
    if (more.length === 0) return [];
    // The timer that this waits by is active as well.
    if (Date.now() > end) return more.map(([kind, count]) => `${count - (before.get(kind) ?? 0)} × ${kind}`);
    await delay(5, undefined, { ref: false });
  }
}

function settingsOf(): string {
  return JSON.stringify([process.cwd(), process.env]);
}

/** Runs one file; what it left behind, in words. */
async function run({ file, timeoutS, closeWithinMs }: z.output<typeof orderSchema>): Promise<string[]> {
  const [before, settings] = [active(), settingsOf()];
  await t.test(file, { timeout: timeoutS * 1000 }, async (root) => {
    const { href } = pathToFileURL(path.resolve(file));
    roots.set(href, root);
    await import(href);
  });
  const left = (await leftOpen(before, closeWithinMs)).map((one) => `left open: ${one}`);
  if (settingsOf() !== settings) left.push('changed the environment or the working folder');
  if (process.exitCode) left.push(`set the exit status ${process.exitCode}`);
  process.exitCode = undefined;
  return left;
}

// Registers tap's hooks on this process, before the first file counts what is active.
t.pipe(process.stdout);
process.on('message', (message) => {
  const { run: order } = commandSchema.parse(message);
  if (order === undefined) process.disconnect();
  else {
    process.send?.({ begins: order.file });
    void run(order).then((left) => process.send?.({ left }));
  }
});
// tap lets go of the channel, which is what this process waits for.
process.channel?.ref();
