import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import t from 'tap';
import { providers } from '../../../engine/providers/index.ts';

t.test('a provider is what its key says', (test) => {
  test.equal(providers.size, 9);
  for (const [key, provider] of providers) {
    test.equal(provider.key, key);
    test.match(key, /^[a-z0-9]+(?:-[a-z0-9]+)*$/);
    const kind = key.replaceAll('-', '_');
    const { settings } = provider;
    if (settings) test.notOk(settings.schema.safeParse({ kind: 'another' }).success, key);
    for (const { key: name } of provider.tools) test.ok(name.startsWith(`${kind}.`), name);
    test.equal(provider.connections.includes('oauth2'), provider.oauth2 !== undefined, key);
    test.equal(provider.connections.includes('oauth1'), provider.oauth1 !== undefined, key);
  }
  test.end();
});

t.test('a choice is refused where all there is was read, and it is not among it', (test) => {
  const chosen: Record<string, object> = {
    github: { kind: 'github', owner: 'acme', repositories: ['site'] },
    'google-analytics': { kind: 'google_analytics', propertyIds: ['1'] },
    'lemon-squeezy': { kind: 'lemon_squeezy', storeIds: ['1'] },
    mongodb: { kind: 'mongodb', databaseName: 'shop', collections: ['orders'] },
    'x-ads': { kind: 'x_ads', accountIds: ['abc'] },
  };
  for (const [key, { checkSettings }] of providers) {
    const settings = chosen[key];
    if (settings === undefined) continue;
    delete chosen[key];
    test.equal(checkSettings(settings, { items: [], truncated: false }).length, 1, key);
    test.equal(checkSettings(settings, { items: [], truncated: false, partial: true }).length, 1, `${key}, partial`);
    test.same(checkSettings(settings, { items: [], truncated: true }), [], `${key}, beyond the first page`);
  }
  test.same(chosen, {});
  test.end();
});

t.test('tools have keys of their own, fitting risks, and schemas that are closed', (test) => {
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  const tools = [...providers.values()].flatMap((provider) => provider.tools);
  test.equal(new Set(tools.map(({ key }) => key)).size, tools.length);
  for (const tool of tools) {
    if (tool.effect === 'read') test.equal(tool.risk, 'low', tool.key);
    test.notMatch(`${tool.title} ${tool.description}`, /\b(?:a [aeio]|an [^aeiou])/i, tool.key);
    test.match(tool.inputSchema, { type: 'object', additionalProperties: false }, tool.key);
    test.equal(ajv.compile(tool.inputSchema)({ unknownField: 1 }), false, tool.key);
  }
  test.end();
});

/** How many of a list a page has at most, by the name of the argument: 200, or what the provider gives. */
const PAGE_SIZES: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  github: { perPage: 100 },
  'google-analytics': { limit: 200 },
  'google-workspace': { maxResults: 200, pageSize: 200 },
  'lemon-squeezy': { pageSize: 100 },
  mongodb: { limit: 200 },
  stripe: { limit: 100 },
  'upstash-redis': { count: 200 },
  'x-ads': { count: 200 },
};
const LESS: Readonly<Record<string, number>> = {
  'google_workspace.tasks.tasklists.list': 100,
  'google_workspace.tasks.tasks.list': 100,
};
/** Beside those that get one thing: what they read is as much as their arguments name, or as one response holds. */
const NO_PAGES = [
  'mongodb.count',
  'mongodb.distinct',
  'stripe.balance.read',
  'upstash_redis.exists',
  'upstash_redis.hget',
  'upstash_redis.hgetall',
  'upstash_redis.llen',
  'upstash_redis.lrange',
  'upstash_redis.mget',
  'upstash_redis.scard',
  'upstash_redis.smembers',
  'upstash_redis.ttl',
  'upstash_redis.type',
  'upstash_redis.zrange',
  'x_ads.accounts.list',
  'x_ads.stats.read',
];

t.test('each tool that reads pages takes so many a page, and refuses more', (test) => {
  const without: string[] = [];
  for (const [provider, { tools, runtime }] of providers) {
    for (const tool of tools.filter(({ effect }) => effect === 'read')) {
      const sizes = Object.entries(PAGE_SIZES[provider] ?? {}).filter(([name]) =>
        Object.hasOwn(tool.inputSchema['properties'] ?? {}, name),
      );
      if (sizes.length === 0) without.push(tool.key);
      for (const [name, most] of sizes) {
        const limit = LESS[tool.key] ?? most;
        test.ok(limit <= 200, tool.key);
        const refuses = (value: number) => {
          const parsed = runtime(tool)?.parse({ [name]: value }, null) ?? { args: null };
          return 'issues' in parsed && parsed.issues.some(({ path }) => path[0] === name);
        };
        test.same([1, limit].map(refuses), [false, false], `${tool.key} takes ${limit}`);
        test.same([0, limit + 1, 1.5].map(refuses), [true, true, true], `${tool.key} takes no more`);
      }
    }
  }
  test.same(without.filter((key) => !key.endsWith('.get')).sort(), NO_PAGES);
  test.end();
});

t.test('each tool has what does it, with the effect that owners see', (test) => {
  for (const { tools, runtime } of providers.values()) {
    for (const { key, effect, inputSchema } of tools) {
      test.equal(runtime({ key, effect, inputSchema })?.effect, effect, key);
      test.equal(runtime({ key, effect: effect === 'read' ? 'write' : 'read', inputSchema }), undefined, key);
    }
  }
  test.end();
});

t.test('scopes of tools are among those that a service asks for, and each service has tools', (test) => {
  for (const provider of providers.values()) {
    const asked = new Set(provider.services.flatMap(({ scopes }) => [...scopes.read, ...scopes.write]));
    for (const { key, title, scopes } of provider.services) {
      test.ok(title.length > 0, key);
      for (const scope of scopes.read) {
        test.ok(
          provider.tools.some((tool) => tool.scopes.includes(scope)),
          `${key}: ${scope}`,
        );
      }
    }
    for (const tool of provider.tools.filter(() => provider.services.length > 0)) {
      test.ok(
        tool.scopes.some((scope) => asked.has(scope)),
        tool.key,
      );
    }
  }
  test.end();
});

t.test('no credential of another kind, and no part of one, is taken', (test) => {
  for (const [key, { credential }] of providers) {
    for (const given of [
      null,
      {},
      'text',
      { kind: 'password' },
      { kind: 'api_key' },
      { kind: 'oauth2', accessToken: '' },
    ]) {
      test.notOk(credential.safeParse(given).success, `${key} ${JSON.stringify(given)}`);
    }
  }
  test.end();
});
