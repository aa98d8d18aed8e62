// A small MCP server with made-up data, for trying integrations without an account anywhere: three tools that read the sales
// beside it (examples/sales.csv), and one that writes. It listens on loopback alone and asks for no authorization.
//   node examples/mcp/server.ts 4100
// `npm run demo -- integrations` and `-- actions` start it, connect it and end it. Needs Node.js 24 (in this folder: npx node …).
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const HOST = '127.0.0.1';
const PATH = '/mcp';

const saleSchema = z.object({
  date: z.iso.date(),
  order: z.string(),
  region: z.string(),
  product: z.string(),
  quantity: z.coerce.number().int(),
  unit_price: z.string(),
  kind: z.enum(['sale', 'return']),
});
type Sale = z.output<typeof saleSchema>;

function readSales(): Sale[] {
  const file = path.join(import.meta.dirname, '..', 'sales.csv');
  const [head = '', ...lines] = readFileSync(file, 'utf8').trim().split(/\r?\n/);
  const names = head.split(',');
  return lines.map((line) => {
    const values = line.split(',');
    return saleSchema.parse(Object.fromEntries(names.map((name, index) => [name, values[index]])));
  });
}

/** In whole cents, so that a total is what adding it up by hand gives. */
const cents = ({ quantity, unit_price }: Sale) => quantity * Math.round(Number(unit_price) * 100);

const reply = (value: unknown) => ({ content: [{ type: 'text' as const, text: JSON.stringify(value) }] });
const region = z.string().max(50).optional().describe('Of this region alone.');
const product = z.string().max(100).optional().describe('Of this product alone.');

/** The tools over `sales`. `readOnlyHint` is what a server says of itself; whoever connects it decides what it is worth. */
function salesTools(sales: Sale[]): McpServer {
  const server = new McpServer({ name: 'demo-sales', version: '1.0.0' });
  const chosen = (of: { region?: string | undefined; product?: string | undefined }) =>
    sales.filter(
      (sale) =>
        (of.region === undefined || of.region === sale.region) &&
        (of.product === undefined || of.product === sale.product),
    );

  server.registerTool(
    'products.list',
    {
      title: 'List products',
      description: 'What the shop has sold, by name.',
      annotations: { readOnlyHint: true },
    },
    () => reply([...new Set(sales.map((sale) => sale.product))].sort()),
  );
  server.registerTool(
    'orders.list',
    {
      title: 'List orders',
      description: 'Sales and returns, the latest first.',
      inputSchema: { region, product, limit: z.int().min(1).max(100).default(20) },
      annotations: { readOnlyHint: true },
    },
    ({ limit, ...of }) => reply(chosen(of).toReversed().slice(0, limit)),
  );
  server.registerTool(
    'sales.total',
    {
      title: 'Add up sales',
      description: 'Gross sales, returns and net sales in cents.',
      inputSchema: { region, product },
      annotations: { readOnlyHint: true },
    },
    (of) => {
      const sum = (kind: Sale['kind']) =>
        chosen(of).reduce((total, sale) => total + (sale.kind === kind ? cents(sale) : 0), 0);
      return reply({ grossCents: sum('sale'), returnsCents: sum('return'), netCents: sum('sale') - sum('return') });
    },
  );
  server.registerTool(
    'returns.create',
    {
      title: 'Book a return',
      description: 'Takes units of an order back. Kept until the server ends; the file stays as it is.',
      inputSchema: { order: z.string().max(50), quantity: z.int().min(1).max(1_000) },
      annotations: { readOnlyHint: false, destructiveHint: false },
    },
    ({ order, quantity }) => {
      const of = (kind: Sale['kind']) => sales.filter((sale) => sale.order === order && sale.kind === kind);
      const [sold] = of('sale');
      const returned = of('return').reduce((total, sale) => total + sale.quantity, 0);
      if (sold === undefined || returned + quantity > sold.quantity) {
        return { ...reply(sold === undefined ? 'there is no such order' : 'more than was sold'), isError: true };
      }
      const back: Sale = { ...sold, date: new Date().toISOString().slice(0, 10), quantity, kind: 'return' };
      sales.push(back);
      return reply(back);
    },
  );
  return server;
}

/** One request, without a session: each has a server of its own over the same sales. */
async function handle(sales: Sale[], req: IncomingMessage, res: ServerResponse): Promise<void> {
  // A page in a browser of this machine could call it by a name that leads here.
  const isLocal = /^(?:127\.0\.0\.1|localhost)(?::\d+)?$/.test(req.headers.host ?? '') && !req.headers.origin;
  if (!isLocal) return void res.writeHead(403).end();
  if (req.url !== PATH) return void res.writeHead(404).end();
  if (req.method !== 'POST') return void res.writeHead(405, { allow: 'POST' }).end();
  const server = salesTools(sales);
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  res.once('close', () => void server.close());
  // Its optional properties are typed less strictly than ours.
  await server.connect(transport as Parameters<McpServer['connect']>[0]);
  await transport.handleRequest(req, res);
}

export type SalesServer = Readonly<{ url: string; close: () => void }>;

/** Serves the sales; port 0 takes a free one. */
export async function serveSales(port = 0): Promise<SalesServer> {
  const sales = readSales();
  const server = createServer((req, res) => {
    handle(sales, req, res).catch(() => {
      if (res.headersSent) res.destroy();
      else res.writeHead(500).end();
    });
  });
  server.listen(port, HOST);
  await once(server, 'listening');
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}${PATH}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

if (import.meta.main) {
  const port = process.argv[2] ?? '0';
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    console.error(`a port is a number up to 65535, not ${JSON.stringify(port)}`);
    process.exit(64);
  }
  const { url } = await serveSales(Number(port));
  console.log(`MCP server of the demo sales: ${url} (Ctrl-C ends it)`);
}
