import { readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { configurationPage } from '../../scripts/docs/configuration.ts';
import { errorsPage } from '../../scripts/docs/errors.ts';
import { raised } from '../../scripts/docs/raised.ts';

const read = (name: string) => readFileSync(path.resolve(import.meta.dirname, '../../docs', name), 'utf8');
const RUN = 'made by npm run docs -- write';

t.test('the configuration page is what the settings say', (test) => {
  test.equal(read('configuration.md'), configurationPage(), RUN);
  test.end();
});

t.test('the errors page has every code that is raised, and no other', (test) => {
  test.equal(read('errors.md'), errorsPage(), RUN);
  test.end();
});

t.test('codes are found in functions, in modules and at endpoints', (test) => {
  const { codes, others } = raised();
  test.ok(codes.get('409 run_lease_expired')?.has('worker'));
  test.ok(codes.has('405 method_not_allowed'), 'raised by a module, declared by no endpoint');
  test.ok(codes.size > 35 && others.size > 90);
  for (const code of ['stale', 'not_stored', 'duplicate_key', 'invalid_cursor', 'acceptance_failed', 'kind_missing']) {
    test.ok(others.has(code), code);
  }
  test.end();
});
