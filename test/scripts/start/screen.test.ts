import path from 'node:path';
import t from 'tap';
import { readConfig } from '../../../engine/config.ts';
import { readCommand } from '../../../scripts/command/options.ts';
import { screen } from '../../../scripts/start/screen.ts';

const options = {
  config: readConfig({ DATA_DIR: '.data' }),
  url: 'http://127.0.0.1:3000',
  jobsUrl: 'http://127.0.0.1:3001',
  database: {
    urls: undefined,
    migrateUrl: '',
    summary: 'embedded Postgres 18',
    notes: [],
    stop: async () => {},
  },
  tokenFile: path.resolve('.data', 'agent-service-token'),
  ownerTokenFile: path.resolve('.data', 'owner-token'),
  adminTokenFile: path.resolve('.data', 'admin-token'),
  encryptionKeysFile: path.resolve('.data', 'encryption-keys'),
  organizationId: crypto.randomUUID(),
  settings: {},
  storageProblem: undefined,
};

/** The words of a line as a shell reads them, without the settings before the command. */
function wordsOf(line: string): string[] {
  const words = line.match(/"[^"]*"|\S+/g) ?? [];
  return words.map((word) => word.replaceAll('"', '')).filter((word) => !/^[A-Z_]+=/.test(word));
}

const commandsOn = (text: string) => text.split('\n').filter((line) => line.includes('npx business-runner '));

t.test('what the screen says to try fits on eighty columns', async (test) => {
  const [, tried = ''] = screen(options).split('Try next');
  const wide = tried.split('\n').filter((line) => line.length > 80);
  test.same(wide, []);
});

t.test('the commands on the screen are commands, wherever the API listens and whoever may call it', async (test) => {
  const other = { ...options, url: 'http://127.0.0.1:3910', tokenFile: undefined };
  const token = { ...options, config: { ...options.config, ownerAuth: { mode: 'token' as const, tokens: ['x'] } } };
  for (const shown of [options, other, token]) {
    const lines = commandsOn(screen(shown));
    test.equal(lines.length, 2);
    for (const line of lines) {
      const called = readCommand(wordsOf(line).slice(2));
      test.equal(called?.values.url, shown === other ? other.url : undefined);
      test.equal(line.includes('BUSINESS_RUNNER_OWNER_TOKEN='), shown === token);
    }
  }
});

t.test('what .env says the commands find by themselves', async (test) => {
  const moved = {
    ...options,
    url: 'http://127.0.0.1:4100',
    tokenFile: path.resolve('data', 'agent-service-token'),
    settings: { PORT: '4100', DATA_DIR: 'data' },
  };
  test.notMatch(screen(moved), /--url|--token-file/);
  test.match(
    screen({ ...moved, settings: {} }),
    / --url http:\/\/127\.0\.0\.1:4100 --token-file data\/agent-service-token\n/,
  );
  test.match(screen({ ...moved, settings: { ...moved.settings, BUSINESS_RUNNER_URL: 'https://x' } }), / --url /);
});

t.test('help is asked for by a word too', (test) => {
  for (const argv of [['help'], ['help', 'task'], ['task', '--help']]) test.equal(readCommand(argv), undefined);
  test.end();
});
