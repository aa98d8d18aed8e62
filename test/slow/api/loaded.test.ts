import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { bareEnvironment } from '../../support/environment.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
/** Each takes a tenth of a second or more, which every start would pay for. */
const LATER = ['undici', 'jose', 'graphql', 'mongodb', '@aws-sdk', '@modelcontextprotocol', 'file-type', 'htmlparser2'];

const LIST = `
  const { registerHooks } = require('node:module');
  const loaded = new Set();
  registerHooks({ load(url, context, next) {
    const name = /node_modules\\/(@?[^/]+)(?!.*node_modules)/.exec(url)?.[1];
    if (name) loaded.add(name);
    return next(url, context);
  } });
  Promise.all(['./api/app.ts', './jobs/catalog.ts', './jobs/runner/workers.ts'].map((file) => import(file))).then(() => {
    console.log(JSON.stringify([...loaded]));
    process.exit();
  });`;

t.test('processes start without the packages that their first request of a kind loads', async (t) => {
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', LIST], { cwd: ROOT, env: bareEnvironment() });
  const loaded: unknown = JSON.parse(stdout);
  t.ok(Array.isArray(loaded) && loaded.includes('express') && loaded.includes('graphile-worker'), 'those it serves by');
  t.same(
    LATER.filter((name) => Array.isArray(loaded) && loaded.includes(name)),
    [],
  );
});
