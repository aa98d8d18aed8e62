import { readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { environmentWith, readConfig } from '../../engine/config.ts';
import { settings } from '../../engine/settings.ts';
import { envExample, settingsHelp } from '../../engine/settings_text.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const TOKEN = 'x'.repeat(32);

t.test('.env.example is what the settings say', async (test) => {
  test.equal(await readFile(path.join(ROOT, '.env.example'), 'utf8'), envExample());
});

t.test('every setting is in --help', async (test) => {
  for (const name of Object.keys(settings)) test.match(settingsHelp(), `  ${name} `);
});

t.test('tokens of administrators are named, or after their digest', (test) => {
  const { adminTokens } = readConfig({ ADMIN_TOKENS: `anna:${TOKEN}, y${TOKEN}` });
  test.match(adminTokens, [
    { name: 'anna', token: TOKEN },
    { name: /^token-[0-9a-f]{8}$/, token: `y${TOKEN}` },
  ]);
  test.end();
});

t.test('without settings it is the open laptop start, and empty ones count as none', async (test) => {
  const config = readConfig({});
  test.match(config, { port: 3000, host: '127.0.0.1', ownerAuth: { mode: 'open' }, agentServiceTokens: [] });
  test.equal(config.storageUrl, `file://${path.resolve('.data')}/files`);
  test.equal(config.jobsPort, undefined, 'job processes listen nowhere');
  test.same(readConfig({ PORT: '', OWNER_AUTH: '', JOBS_PORT: '' }), config);
});

t.test('the LISTEN connection is that of the database unless it has its own', async (test) => {
  const [pooled, direct] = ['postgres://pooler/x', 'postgres://direct/x'];
  test.equal(readConfig({ DATABASE_URL: pooled }).listenDatabaseUrl, pooled);
  test.equal(readConfig({ DATABASE_URL: pooled, LISTEN_DATABASE_URL: direct }).listenDatabaseUrl, direct);
});

t.test('the settings of AWS are taken for a storage in S3, and by nothing else', async (test) => {
  const aws = {
    AWS_REGION: 'eu-north-1',
    AWS_ENDPOINT_URL: 'http://127.0.0.1:1',
    AWS_ACCESS_KEY_ID: 'id',
    AWS_SECRET_ACCESS_KEY: 'secret',
  };
  const credentials = { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: undefined };
  test.same(readConfig({ ...aws, STORAGE_URL: 's3://files/here' }).aws, {
    region: 'eu-north-1',
    endpoint: 'http://127.0.0.1:1',
    credentials,
  });
  const own = readConfig({ ...aws, STORAGE_URL: 's3://files', AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:2' }).aws;
  test.equal(own.endpoint, 'http://127.0.0.1:2', 'the one of S3 comes first');
  test.equal(readConfig({ STORAGE_URL: 's3://files', AWS_REGION: 'x' }).aws.credentials, undefined);
  test.same(readConfig(aws).aws, {});
  test.same(readConfig({ AWS_ACCESS_KEY_ID: 'id' }).aws, {}, 'not even judged');
});

t.test('the model of research is asked with or without a key', async (test) => {
  const [url, model] = ['http://127.0.0.1:8000/v1', 'small'];
  test.equal(readConfig({}).researchModel, undefined);
  test.equal(readConfig({}).allowPrivateAddresses, false);
  const settings = { RESEARCH_LLM_URL: url, RESEARCH_LLM_MODEL: model };
  test.same(readConfig(settings).researchModel, { url, model, key: undefined });
  test.same(readConfig({ ...settings, RESEARCH_LLM_KEY: 'k' }).researchModel, { url, model, key: 'k' });
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
    ['STORAGE_URL', { STORAGE_URL: 'file:files' }],
    ['STORAGE_URL', { STORAGE_URL: 's3://' }],
    ['STORAGE_URL', { STORAGE_URL: 's3://files?pathstyle=1', AWS_REGION: 'eu-north-1' }],
    ['AWS_REGION', { STORAGE_URL: 's3://files' }],
    ['AWS_SECRET_ACCESS_KEY', { STORAGE_URL: 's3://files?region=x', AWS_ACCESS_KEY_ID: 'x' }],
    ['AWS_ACCESS_KEY_ID', { STORAGE_URL: 's3://files?region=x', AWS_SECRET_ACCESS_KEY: 'x' }],
    ['AWS_ENDPOINT_URL_S3', { STORAGE_URL: 's3://files', AWS_ENDPOINT_URL_S3: 'localhost' }],
    ['OWNER_AUTH', { OWNER_AUTH: 'none' }],
    ['OWNER_AUTH', { HOST: '0.0.0.0' }],
    ['OWNER_AUTH', { HOST: '0.0.0.0', OWNER_AUTH: 'open', OWNER_TOKENS: TOKEN }],
    ['OWNER_TOKENS', { OWNER_AUTH: 'token' }],
    ['OWNER_TOKENS', { OWNER_TOKENS: `${TOKEN},short` }],
    ['OWNER_JWKS_URL', { OWNER_AUTH: 'jwt' }],
    ['OWNER_JWT_AUDIENCE', { OWNER_AUTH: 'jwt', OWNER_JWKS_URL: 'https://a/b', OWNER_JWT_ISSUER: 'https://a' }],
    ['AGENT_SERVICE_TOKENS', { AGENT_SERVICE_TOKENS: `${TOKEN} ${TOKEN}` }],
    ['ADMIN_TOKENS', { ADMIN_TOKENS: 'anna:short' }],
    ['ADMIN_TOKENS', { ADMIN_TOKENS: `Anna:${TOKEN}` }],
    ['ADMIN_TOKENS', { ADMIN_TOKENS: `${'a'.repeat(41)}:${TOKEN}` }],
    ['ADMIN_TOKENS', { ADMIN_TOKENS: `anna:${TOKEN},anna:y${TOKEN}` }],
    ['ADMIN_TOKENS', { ADMIN_TOKENS: `anna:${TOKEN},ben:${TOKEN}` }],
    ['ADMIN_TOKENS', { ADMIN_TOKENS: `anna:${TOKEN}`, OWNER_TOKENS: TOKEN }],
    ['ADMIN_TOKENS', { ADMIN_TOKENS: `anna:${TOKEN}`, AGENT_SERVICE_TOKENS: `y${TOKEN}, ${TOKEN}` }],
    ['LEASE_SECONDS', { LEASE_SECONDS: '0' }],
    ['RESEARCH_LLM_URL', { RESEARCH_LLM_URL: 'model.example' }],
    ['RESEARCH_LLM_URL', { RESEARCH_LLM_URL: 'https://user:secret@model.example/v1' }],
    ['RESEARCH_LLM_URL', { RESEARCH_LLM_MODEL: 'small' }],
    ['RESEARCH_LLM_URL', { RESEARCH_LLM_KEY: 'key' }],
    ['RESEARCH_LLM_MODEL', { RESEARCH_LLM_URL: 'https://model.example/v1' }],
    ['RESEARCH_LLM_KEY', { RESEARCH_LLM_KEY: 'a key\n' }],
    ['ALLOW_PRIVATE_ADDRESSES', { ALLOW_PRIVATE_ADDRESSES: 'yes' }],
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
