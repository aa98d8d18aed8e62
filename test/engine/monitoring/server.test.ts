import { Counter, Gauge, Registry } from 'prom-client';
import t, { type Test } from 'tap';
import { type MonitorOptions, startMonitor } from '../../../engine/monitoring/server.ts';

const TOKEN = 'metrics-token-of-the-tests-0123456789';

async function start(t: Test, options: Partial<MonitorOptions> = {}) {
  const registry = new Registry();
  new Counter({ name: 'things_total', help: 'Things.', registers: [registry] }).inc(3);
  const monitor = await startMonitor({ host: '127.0.0.1', port: 0, registry, metricsTokens: [], ...options });
  t.teardown(() => monitor.close());
  const get = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${monitor.url}${path}`, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return { get, registry };
}

t.test('it tells that the process lives, whether it is ready, and its metrics', async (t) => {
  let reason: string | undefined = 'Not yet.';
  const { get } = await start(t, { notReady: async () => reason });
  t.match(await get('/healthz'), { status: 200, text: '{"status":"ok"}\n' });
  t.match(await get('/readyz'), { status: 503, text: '{"error":"Not yet."}\n' });
  reason = undefined;
  t.match(await get('/readyz?verbose'), { status: 200, text: '{"status":"ready"}\n' });
  const metrics = await get('/metrics');
  t.match(metrics, { status: 200, text: /^things_total 3$/m });
  t.match(metrics.headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  t.equal(metrics.headers.get('cache-control'), 'no-store');
  t.match(await get('/metrics', { method: 'HEAD' }), { status: 200, text: '' });
  t.match(await get('/metrics', { method: 'POST', body: 'x' }), { status: 405 });
  t.match(await get('/elsewhere'), { status: 404, text: /\/healthz, \/metrics, \/readyz/ });
});

t.test('its metrics take a token where there are any, and its probes none', async (t) => {
  const { get } = await start(t, { metricsTokens: [TOKEN] });
  const refused = await get('/metrics');
  t.match(refused, { status: 401, text: /token is required/ });
  t.match(refused.headers.get('www-authenticate'), /^Bearer /);
  t.match(await get('/metrics', { headers: { authorization: `Bearer ${TOKEN}` } }), { status: 200 });
  t.match(await get('/healthz'), { status: 200 });
  t.match(await get('/readyz'), { status: 404 }, 'nothing tells whether it is ready');
});

t.test('metrics that cannot be collected are 500, and it goes on', async (t) => {
  const { get, registry } = await start(t);
  new Gauge({
    name: 'broken',
    help: 'Broken.',
    registers: [registry],
    collect() {
      throw new Error('no number');
    },
  });
  t.match(await get('/metrics'), { status: 500, text: 'no number' });
  t.match(await get('/healthz'), { status: 200 });
});
