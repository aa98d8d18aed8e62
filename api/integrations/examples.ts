import { ids } from '../http/openapi/example_values.ts';
import type { AgentIntegration, Integration } from './schema.ts';

const inputSchema = { type: 'object', required: ['storeId'] };

/** One of each provider. */
export const newIntegrationExamples = {
  github: { key: 'code', provider: 'github' },
  'google-analytics': { key: 'visits', provider: 'google-analytics', departments: ['growth'] },
  'google-workspace': { key: 'office', provider: 'google-workspace', accessMode: 'full' },
  'lemon-squeezy': { key: 'web-shop', provider: 'lemon-squeezy' },
  mcp: { key: 'help-desk', provider: 'mcp', name: 'Help desk', departments: ['growth'] },
  mongodb: { key: 'orders', provider: 'mongodb' },
  stripe: { key: 'payments', provider: 'stripe' },
  'upstash-redis': { key: 'carts', provider: 'upstash-redis' },
  'x-ads': { key: 'ads', provider: 'x-ads' },
};

const made = '2026-11-03T09:20:41.300Z';

export const integrationExample = {
  id: ids.integration,
  organizationId: ids.organization,
  key: 'web-shop',
  provider: 'lemon-squeezy',
  name: 'Web shop',
  status: 'enabled',
  readiness: 'ready',
  accessMode: 'read_only',
  services: [],
  departments: ['growth'],
  settings: { kind: 'lemon_squeezy', storeIds: ['40917'] },
  tools: [
    {
      key: 'lemon_squeezy.orders.list',
      title: 'List orders',
      description: 'Lists orders of a store, newest first.',
      effect: 'read',
      risk: 'low',
      enabled: true,
      available: true,
      unavailableReason: null,
      requiredScopes: [],
      inputSchema,
      digest: 'b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c',
    },
  ],
  connection: {
    kind: 'api_key',
    account: { label: 'a…@lampstudio.example' },
    grantedScopes: [],
    connectedAt: '2026-11-03T09:22:10.114Z',
    revision: 1,
  },
  contextMapping: null,
  discovery: { at: '2026-11-03T09:24:55.027Z', status: 'ok', error: null },
  createdAt: made,
  updatedAt: '2026-11-03T09:24:55.027Z',
} satisfies Integration;

/** As it was made. The tools of an MCP server are its own, so that there are none before it is asked. */
export const newIntegrationData = {
  ...integrationExample,
  key: 'help-desk',
  provider: 'mcp',
  name: 'Help desk',
  readiness: 'not_connected',
  settings: null,
  tools: [],
  connection: null,
  discovery: null,
  updatedAt: made,
} satisfies Integration;

export const agentIntegrationExample = {
  id: ids.integration,
  key: 'web-shop',
  provider: 'lemon-squeezy',
  name: 'Web shop',
  readiness: 'ready',
  accessMode: 'read_only',
  departments: ['growth'],
  capabilities: [{ tool: 'lemon_squeezy.orders.list', effect: 'read', risk: 'low', inputSchema }],
  available: true,
  unavailableReason: null,
} satisfies AgentIntegration;

/** What a person may choose from. */
export const storeExample = {
  id: '40917',
  name: 'Lamp Studio',
  slug: 'lamp-studio',
  domain: 'lampstudio.example',
  currency: 'EUR',
};
export const collectionExample = { name: 'orders', fields: ['customer.region', 'lines.sku', 'total'] };
export const propertyExample = {
  id: '318204417',
  name: 'lampstudio.example',
  account: 'Lamp Studio',
  timeZone: 'Europe/Berlin',
  currency: 'EUR',
};

/** One of each provider that has settings. */
export const settingsExamples = [
  { kind: 'github', owner: 'lampstudio', repositories: ['shop', 'website'] },
  { kind: 'google_analytics', propertyIds: ['318204417'] },
  { kind: 'lemon_squeezy', storeIds: ['40917'] },
  { kind: 'mcp', serverUrl: 'https://mcp.lampstudio.example/mcp' },
  { kind: 'mongodb', databaseName: 'shop', collections: ['orders'] },
  { kind: 'stripe' },
  {
    kind: 'upstash_redis',
    restUrl: 'https://eu2-tidy-cat-30142.upstash.io',
    keyScope: { kind: 'prefixes', prefixes: ['cart:'] },
  },
  { kind: 'x_ads', accountIds: ['18ce54d4x5t'] },
];

/** One of each provider that a person connects by a credential. */
export const credentialExamples = {
  github: { kind: 'github_token', token: 'github_pat_11N0tAToken0123456789' },
  'lemon-squeezy': { kind: 'api_key', apiKey: 'eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9' },
  mcp: { kind: 'none' },
  mongodb: {
    kind: 'mongodb',
    host: 'shop.lampstudio.example',
    srv: true,
    username: 'reader',
    password: 'not-a-password',
    tls: true,
  },
  stripe: { kind: 'api_key', apiKey: 'rk_live_51N0tAKey' },
  'upstash-redis': { kind: 'bearer_token', token: 'AXVAASQgNzg2ZmI1' },
};
