import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { type EncodedContent, encodeContent, once } from '../http/encoded.ts';
import { htmlPage } from '../http/page.ts';

export const docsFiles = ['reference.js', 'start.js', 'icon.svg'] as const;
type DocsFile = (typeof docsFiles)[number];

export const docsTypes: Readonly<Record<DocsFile, string>> = {
  'reference.js': 'text/javascript; charset=utf-8',
  'start.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml; charset=utf-8',
};

/**
 * The script of Scalar's API reference. No package holds it as a file of its own without bringing the fifty megabytes of its
 * parts: the plugin for Fastify has it as the text of one constant.
 * @throws Error where another version of the package keeps it elsewhere
 */
async function referenceScript(): Promise<string> {
  const plugin = await readFile(fileURLToPath(import.meta.resolve('@scalar/fastify-api-reference')), 'utf8');
  const [, literal] = /^var standalone_default = (".*");$/m.exec(plugin) ?? [];
  if (literal === undefined) throw new Error('@scalar/fastify-api-reference has no script of the API reference');
  return String(runInNewContext(literal));
}

/** Everything from this host, nothing told to another, and no product that is not ours. */
const configuration = {
  url: 'openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  hideModels: true,
  documentDownloadType: 'json',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  metaData: { title: 'Business Runner API' },
};

const script = `Scalar.createApiReference('#reference', ${JSON.stringify(configuration)});\n`;

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1f56c4"/><path d="M9 7h9a5 5 0 0 1 2.6 9.2A5.4 5.4 0 0 1 18 26H9zm4 4v4h4.4a2 2 0 0 0 0-4zm0 8v3h4.6a1.5 1.5 0 0 0 0-3z" fill="#fff"/></svg>
`;

/** Everything from this host: the page works without the internet. Scalar sets styles in the page. */
export const docsPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export const docsPage = htmlPage(
  'Business Runner API',
  '<link rel="icon" href="docs/icon.svg">',
  `<div id="reference"></div>
    <script src="docs/reference.js"></script>
    <script src="docs/start.js"></script>`,
);

const assets: Readonly<Record<DocsFile, () => Promise<EncodedContent>>> = {
  'reference.js': once(async () => encodeContent(await referenceScript())),
  'start.js': once(() => encodeContent(script)),
  'icon.svg': once(() => encodeContent(icon)),
};

/** A file of the page, read and compressed when it is first asked for. */
export function docsAsset(file: DocsFile): Promise<EncodedContent> {
  return assets[file]();
}
