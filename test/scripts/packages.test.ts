import { readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { z } from 'zod';

const entry = z.looseObject({
  version: z.string().optional(),
  resolved: z.string().optional(),
  dev: z.boolean().optional(),
  optional: z.boolean().optional(),
  link: z.boolean().optional(),
});
const lock = z.object({ packages: z.record(z.string(), entry) });
const file = path.resolve(import.meta.dirname, '../../package-lock.json');
const { packages } = lock.parse(JSON.parse(readFileSync(file, 'utf8')));
const installed = Object.entries(packages).filter(([name, { link }]) => name.includes('node_modules/') && !link);

t.test(
  'npm knows where each package is: it would ask for all versions of one first, and take twice the time',
  (test) => {
    test.ok(installed.length > 400);
    const unknown = installed.filter(([, { resolved }]) => !resolved?.startsWith('https://registry.npmjs.org/'));
    test.same(
      unknown.map(([name]) => name),
      [],
    );
    test.end();
  },
);

t.test('a start installs what running needs: no compiler, no sources of finished pages, no Node of its own', (test) => {
  // With --omit=dev npm also installs development packages that something else may use.
  const running = installed.filter(([, { dev, optional }]) => !dev && !optional).map(([name]) => name);
  const large =
    /node_modules\/(typescript|monaco-editor|react-aria|graphiql|prettier|framer-motion|node-[a-z]+-[a-z0-9]+)$/;
  test.same(
    running.filter((name) => large.test(name)),
    [],
  );
  test.ok(running.length < 345, `${running.length} packages`);
  const nodes = Object.keys(packages['']?.['optionalDependencies'] ?? {}).filter((name) => name.startsWith('node-'));
  test.same(nodes, [], 'of the workspace scripts/node alone, which is left out where the machine has a new one');
  test.end();
});
