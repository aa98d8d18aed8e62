import { randomBytes } from 'node:crypto';
import t from 'tap';
import { type ConfigError, readConfig } from '../../engine/config.ts';

const [A, B] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
const integrations = (environment: NodeJS.ProcessEnv) => readConfig(environment).integrations;

function refuses(test: Pick<typeof t, 'throws' | 'notMatch'>, environment: NodeJS.ProcessEnv, message: RegExp): void {
  test.throws(() => readConfig(environment), { name: 'ConfigError', message });
  try {
    readConfig(environment);
  } catch (error) {
    test.notMatch((error as ConfigError).message, A.slice(0, 20), 'what was given is not repeated');
  }
}

t.test('encryption keys are read in their order', async (test) => {
  test.same(integrations({}).encryptionKeys, []);
  test.same(integrations({ ENCRYPTION_KEYS: `new:${A}, old_1:${B}` }).encryptionKeys, [
    { id: 'new', key: Buffer.from(A, 'base64') },
    { id: 'old_1', key: Buffer.from(B, 'base64') },
  ]);
});

t.test('a key with an error is refused, and not shown', async (test) => {
  refuses(test, { ENCRYPTION_KEYS: A }, /^ENCRYPTION_KEYS: each key is id:base64/);
  refuses(test, { ENCRYPTION_KEYS: `Ä:${A}` }, /^ENCRYPTION_KEYS: each key is id:base64/);
  refuses(test, { ENCRYPTION_KEYS: `a:${A},` }, /^ENCRYPTION_KEYS: each key is id:base64/);
  for (const wrong of [
    A.slice(1),
    A.slice(0, -1),
    `${A}${A}`,
    A.replace(/^./, '*'),
    `${A.slice(0, 20)} ${A.slice(20)}`,
    '',
  ]) {
    refuses(test, { ENCRYPTION_KEYS: `a:${wrong}` }, /^ENCRYPTION_KEYS: each key is 32 bytes in base64$/);
  }
  refuses(test, { ENCRYPTION_KEYS: `a:${A},a:${B}` }, /two keys have the same id/);
  refuses(test, { ENCRYPTION_KEYS: `a:${A},b:${A}` }, /two ids have the same key/);
});

t.test('a client has an ID and a secret', async (test) => {
  test.same(integrations({ GOOGLE_CLIENT_ID: 'id', GOOGLE_CLIENT_SECRET: 'secret' }).oauthClients, {
    google: { id: 'id', secret: 'secret' },
    github: undefined,
    xAds: undefined,
  });
  refuses(test, { GITHUB_CLIENT_ID: 'id' }, /^GITHUB_CLIENT_SECRET: required by GITHUB_CLIENT_ID$/);
  refuses(test, { X_ADS_CONSUMER_SECRET: 'x' }, /^X_ADS_CONSUMER_KEY: required by X_ADS_CONSUMER_SECRET$/);
});

t.test('the MCP client is registered beforehand or has a document', async (test) => {
  const url = 'https://runner.example/mcp-client.json';
  test.equal(integrations({}).mcpClient, undefined);
  test.same(integrations({ MCP_CLIENT_ID: 'id' }).mcpClient, { kind: 'registered', id: 'id' });
  test.same(integrations({ MCP_CLIENT_METADATA_URL: url }).mcpClient, { kind: 'metadata', url });
  refuses(test, { MCP_CLIENT_ID: 'id', MCP_CLIENT_METADATA_URL: url }, /not both/);
  refuses(test, { MCP_CLIENT_METADATA_URL: 'http://runner.example/c.json' }, /https/);
  refuses(test, { MCP_CLIENT_METADATA_URL: 'https://runner.example' }, /path/);
});

t.test('addresses of ours end without a slash', async (test) => {
  const config = integrations({ PUBLIC_URL: 'https://runner.example/api/', FRONTEND_URL: 'http://127.0.0.1:5173' });
  test.match(config, { publicUrl: 'https://runner.example/api', frontendUrl: 'http://127.0.0.1:5173' });
  refuses(test, { PUBLIC_URL: 'https://runner.example/?a' }, /^PUBLIC_URL: must have no query/);
});

t.test('origins are replaced in tests alone', async (test) => {
  const map = '{"https://api.stripe.com": "http://127.0.0.1:9001"}';
  test.same(
    [...integrations({ PROVIDER_ORIGINS: map, ALLOW_PRIVATE_ADDRESSES: '1' }).providerOrigins],
    [['https://api.stripe.com', 'http://127.0.0.1:9001']],
  );
  test.equal(integrations({}).providerOrigins.size, 0);
  refuses(test, { PROVIDER_ORIGINS: map }, /^PROVIDER_ORIGINS: only with ALLOW_PRIVATE_ADDRESSES=1/);
  refuses(test, { PROVIDER_ORIGINS: '{}' }, /^PROVIDER_ORIGINS: only with/);
  for (const wrong of ['no json', '[]', '{"a": 1}', 'null']) {
    refuses(
      test,
      { PROVIDER_ORIGINS: wrong, ALLOW_PRIVATE_ADDRESSES: '1' },
      /^PROVIDER_ORIGINS: must be a JSON object/,
    );
  }
  for (const wrong of ['https://api.stripe.com/', 'https://api.stripe.com/v1', 'api.stripe.com', 'https://u@a.b']) {
    const given = JSON.stringify({ 'https://api.stripe.com': wrong });
    refuses(
      test,
      { PROVIDER_ORIGINS: given, ALLOW_PRIVATE_ADDRESSES: '1' },
      /^PROVIDER_ORIGINS: each side is an origin/,
    );
  }
});
