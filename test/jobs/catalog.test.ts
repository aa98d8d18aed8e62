import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { catalog, isJobName, JobError, type JobName, parsePayload } from '../../jobs/catalog.ts';
import { crontab } from '../../jobs/crontab.ts';

const SQL = path.resolve(import.meta.dirname, '..', '..', 'sql');
const ORGANIZATION = '0198f6f0-0000-7000-8000-000000000001';

t.test('a payload is checked, and what the crontab adds is left out', async (t) => {
  t.same(parsePayload('dispatch', { _cron: { ts: '2026-01-01T00:00:00Z', backfilled: false } }), {});
  t.same(parsePayload('dispatch', null), {});
  t.same(parsePayload('organizations__delete', { organizationId: ORGANIZATION }), {
    organizationId: ORGANIZATION,
    late: false,
  });
  for (const wrong of [{}, { organizationId: 'x' }, { organizationId: ORGANIZATION, extra: 1 }, [], 'text']) {
    t.throws(() => parsePayload('organizations__delete', wrong), {
      name: 'JobError',
      message: /^wrong payload of organizations__delete: /,
    });
  }
  t.throws(() => parsePayload('toString' as JobName, {}), new JobError('there is no task "toString"'));
});

t.test('whatever adds jobs names a task of the catalog', async (t) => {
  const files = (await readdir(SQL, { recursive: true })).filter((name) => name.endsWith('.sql'));
  const texts = await Promise.all(files.map((name) => readFile(path.join(SQL, name), 'utf8')));
  const named = texts.flatMap((text) =>
    [...text.matchAll(/perform app\.enqueue\(\s*'([^']*)'/g)].map((match) => match[1]),
  );
  t.ok(named.includes('organizations__delete'));
  for (const name of [...named, ...crontab.map((item) => item.task)]) {
    t.ok(isJobName(name ?? ''), `${name} is in the catalog`);
  }
});

t.test('a job <noun>__<verb> lies in jobs/<noun>/<verb>.ts', async (t) => {
  for (const name of Object.keys(catalog)) {
    const [noun = '', verb = noun] = name.split('__');
    t.ok(existsSync(path.resolve(SQL, '..', 'jobs', noun, `${verb}.ts`)), name);
  }
});
