import { readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { envExample, environmentWith, readConfig, settings, settingsHelp } from '../../engine/config.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const TOKEN = 'x'.repeat(32);

t.test('.env.example is what the settings say', async (test) => {
  test.equal(await readFile(path.join(ROOT, '.env.example'), 'utf8'), envExample());
});

t.test('the table of the README is what the settings say', async (test) => {
  const readme = await readFile(path.join(ROOT, 'README.md'), 'utf8');
  const rows = readme.split('\n').filter((line) => /^\| `[A-Z_]+` \|/.test(line));
  const wanted = Object.entries(settings).map(
    ([name, { default: value, help }]) => `| \`${name}\` | ${value === undefined ? '' : `\`${value}\``} | ${help} |`,
  );
  test.same(rows, wanted);
});

t.test('every setting is in --help', async (test) => {
  for (const name of Object.keys(settings)) test.match(settingsHelp(), `  ${name} `);
});

t.test('without settings it is the open laptop start, and empty ones count as none', async (test) => {
  const config = readConfig({});
  test.match(config, { port: 3000, host: '127.0.0.1', ownerAuth: { mode: 'open' }, agentServiceTokens: [] });
  test.equal(config.storageUrl, `file://${path.resolve('.data')}/files`);
  test.same(readConfig({ PORT: '', OWNER_AUTH: '' }), config);
});

t.test('the LISTEN connection is that of the database unless it has its own', async (test) => {
  const [pooled, direct] = ['postgres://pooler/x', 'postgres://direct/x'];
  test.equal(readConfig({ DATABASE_URL: pooled }).listenDatabaseUrl, pooled);
  test.equal(readConfig({ DATABASE_URL: pooled, LISTEN_DATABASE_URL: direct }).listenDatabaseUrl, direct);
});

t.test('owner tokens choose the mode token', async (test) => {
  const tokens = [TOKEN, 'y'.repeat(40)];
  test.same(readConfig({ OWNER_TOKENS: tokens.join(', ') }).ownerAuth, { mode: 'token', tokens });
});

t.test('a wrong value is one line that names its setting', async (test) => {
  const wrong: readonly [string, NodeJS.ProcessEnv][] = [
    ['PORT', { PORT: '70000' }],
    ['PORT', { PORT: '3e3' }],
    ['DATABASE_URL', { DATABASE_URL: 'mysql://localhost' }],
    ['STORAGE_URL', { STORAGE_URL: 'ftp://x' }],
    ['OWNER_AUTH', { OWNER_AUTH: 'none' }],
    ['OWNER_AUTH', { HOST: '0.0.0.0' }],
    ['OWNER_AUTH', { HOST: '0.0.0.0', OWNER_AUTH: 'open', OWNER_TOKENS: TOKEN }],
    ['OWNER_TOKENS', { OWNER_AUTH: 'token' }],
    ['OWNER_TOKENS', { OWNER_TOKENS: `${TOKEN},short` }],
    ['OWNER_JWKS_URL', { OWNER_AUTH: 'jwt' }],
    ['OWNER_JWT_AUDIENCE', { OWNER_AUTH: 'jwt', OWNER_JWKS_URL: 'https://a/b', OWNER_JWT_ISSUER: 'https://a' }],
    ['AGENT_SERVICE_TOKENS', { AGENT_SERVICE_TOKENS: `${TOKEN} ${TOKEN}` }],
    ['LEASE_SECONDS', { LEASE_SECONDS: '0' }],
    ['LOG_LEVEL', { LOG_LEVEL: 'loud' }],
  ];
  for (const [name, environment] of wrong) {
    test.throws(
      () => readConfig(environment),
      { name: 'ConfigError', message: new RegExp(`^${name}: .+$`) },
      JSON.stringify(environment),
    );
  }
});

t.test('a child gets our environment with other settings', async (test) => {
  const environment = environmentWith({ PORT: '1', DATABASE_URL: undefined });
  test.match(environment, { PORT: '1', PATH: process.env['PATH'] });
  test.equal(environment['DATABASE_URL'], undefined);
});
