import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { settings } from '../../engine/settings.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { configurationPage } from '../../scripts/docs/configuration.ts';
import { loadEnvironmentFile, nameProblem, readEnvironmentFile } from '../../scripts/environment_file.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Commands that work on the repository or on a world of their own, and follow no setting. */
const WITHOUT = ['bench', 'chaos', 'docs', 'generate', 'lint:sql', 'test'];

t.test('every command that follows settings reads .env, unless --no-env-file is given, and says so', async (test) => {
  const page = configurationPage();
  for (const [name, line] of Object.entries(packageJson.scripts)) {
    const script = /^exec node (scripts\/\S+)/.exec(line)?.[1];
    if (script === undefined || WITHOUT.includes(name)) continue;
    const first = await readFile(path.join(root, script), 'utf8');
    const rest = /from '(\.\/[a-z_]+\/run\.ts)'/.exec(first)?.[1];
    const code = rest === undefined ? first : await readFile(path.join(root, 'scripts', rest), 'utf8');
    // Options of `npm start` and `npm run dev` are read by what they have in common.
    test.match(code, /\bsupervise\(|EnvironmentFile\(process\.argv\.slice\(2\)\)/, script);
    const options = ['worker', 'report'].includes(name) ? `scripts/${name}/options.ts` : script;
    const help = options === script ? code : await readFile(path.join(root, options), 'utf8');
    test.match(help, /--no-env-file|ENVIRONMENT_FILE_HELP/, options);
    test.match(page, `\`npm ${name === 'start' ? '' : 'run '}${name}\``);
  }
});

t.test('the environment wins over .env, which --no-env-file leaves unread', async (test) => {
  const before = { ...process.env };
  const folder = test.testdir({});
  const file = path.join(folder, '.env');
  await writeFile(file, 'BR_TEST_GIVEN=file\nBR_TEST_EMPTY=file\nBR_TEST_NEW="of the file"\n');
  process.env['BR_TEST_GIVEN'] = 'environment';
  process.env['BR_TEST_EMPTY'] = '';
  test.teardown(() => {
    for (const name of ['GIVEN', 'EMPTY', 'NEW']) delete process.env[`BR_TEST_${name}`];
  });

  test.same(loadEnvironmentFile(['a', '--no-env-file', '--', '--no-env-file'], file), ['a', '--', '--no-env-file']);
  test.same({ ...process.env }, { ...before, BR_TEST_GIVEN: 'environment', BR_TEST_EMPTY: '' });
  test.same(readEnvironmentFile(['--no-env-file'], file), { argv: [], settings: {} });
  test.same(readEnvironmentFile([], `${file}.missing`), { argv: [], settings: {} });

  // Behind -- it is an option of another program.
  test.same(loadEnvironmentFile(['--', '--no-env-file'], file), ['--', '--no-env-file']);
  test.match(process.env, { BR_TEST_GIVEN: 'environment', BR_TEST_EMPTY: '', BR_TEST_NEW: 'of the file' });
  test.same(readEnvironmentFile([], file).settings, {
    BR_TEST_GIVEN: 'file',
    BR_TEST_EMPTY: 'file',
    BR_TEST_NEW: 'of the file',
  });
});

t.test('a name that is no setting is told of, with the nearest one', async (test) => {
  const suggestion = (name: string) => /did you mean (\w+)\?$/.exec(nameProblem(name) ?? '')?.[1];
  test.equal(suggestion('DATABSE_URL'), 'DATABASE_URL');
  test.equal(suggestion('database_url'), 'DATABASE_URL');
  test.equal(suggestion('OWNER_TOKEN'), 'OWNER_TOKENS');
  test.equal(suggestion('AWS_REGON'), 'AWS_REGION');
  test.match(nameProblem('FAVORITE_COLOR'), /^FAVORITE_COLOR is no setting of this version, and changes nothing$/);
  for (const name of Object.keys(settings)) test.equal(nameProblem(name), undefined, name);
  // What the worker, libpq, the AWS SDK and Node.js read.
  const others = [
    'BUSINESS_RUNNER_OWNER_TOKEN',
    'PGPORT',
    'PGHOST',
    'AWS_PROFILE',
    'NODE_EXTRA_CA_CERTS',
    'HTTPS_PROXY',
  ];
  for (const name of others) test.equal(nameProblem(name), undefined, name);
});

t.test('the warnings of a file go to standard error, and the settings hold all the same', async (test) => {
  const file = path.join(test.testdir({}), '.env');
  await writeFile(file, 'LOG_LEVL=debug\nBR_TEST_KEPT=1\n');
  const script = `import { loadEnvironmentFile } from './scripts/environment_file.ts';
    loadEnvironmentFile([], ${JSON.stringify(file)}); console.log(process.env.BR_TEST_KEPT);`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: root,
    encoding: 'utf8',
  });
  test.equal(stdout, '1\n');
  test.equal(
    stderr,
    'warning: .env: BR_TEST_KEPT is no setting of this version, and changes nothing\nwarning: .env: LOG_LEVL is no setting, and changes nothing: did you mean LOG_LEVEL?\n',
  );
});
