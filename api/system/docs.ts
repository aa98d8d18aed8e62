import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { type EncodedContent, encodeContent, once } from '../http/encoded.ts';
import { overview } from '../http/openapi/document.ts';
import { htmlPage, icon } from '../http/page.ts';
import { overviewHtml } from './docs_beginning.ts';

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

/**
 * Scalar's script keeps a browser busy for seconds before it shows anything. So the page itself holds how to begin, above the
 * reference, and the script starts once that is painted.
 */
const script = `const reference = document.getElementById('reference');
const beginning = document.getElementById('beginning');
new MutationObserver((_changes, observer) => {
  if (reference.querySelector('h1, h2, h3') === null) return;
  observer.disconnect();
  beginning.remove();
}).observe(reference, { childList: true, subtree: true });
const library = document.createElement('script');
library.src = new URL('reference.js', document.currentScript.src).href;
library.onload = () => Scalar.createApiReference(reference, ${JSON.stringify(configuration)});
library.onerror = () => {
  beginning.querySelector('[role=status]').textContent = 'The calls could not be loaded: reload this page, or read openapi.json.';
};
requestAnimationFrame(() => setTimeout(() => document.head.append(library)));
`;

const style = `
      #beginning { color-scheme: light dark; position: fixed; inset: 0; z-index: 1; overflow: auto; font: 16px/1.55 system-ui, sans-serif; background: light-dark(#fff, #0f0f0f); color: light-dark(#2a2f45, #e7e7e7); }
      #beginning > div { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
      #beginning h1 { font-size: 1.6rem; line-height: 1.2; }
      #beginning [role=status] { color: light-dark(#586070, #a0a8b8); }
      #beginning h2 { margin-top: 2rem; font-size: 1.15rem; }
      #beginning pre { padding: 0.7rem 0.9rem; background: light-dark(#f5f6f8, #1c1f26); border-radius: 6px; font: 14px/1.5 ui-monospace, monospace; overflow-x: auto; }
      #beginning code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
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

/** The commands in a text, for a service at this port; 0: it was chosen, and the text keeps the default. */
export function atPort(text: string, port: number): string {
  return port === 0 ? text : text.replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`);
}

export const docsPage = htmlPage(
  'Business Runner API',
  `<link rel="icon" href="docs/icon.svg">
    <link rel="preload" href="docs/reference.js" as="script">
    <link rel="preload" href="openapi.json" as="fetch" crossorigin>
    <style>${style}</style>`,
  `<div id="reference"></div>
    <div id="beginning"><div>
      <h1>Business Runner API</h1>
      <p role="status">Every call, with search, follows in a moment; <a href="openapi.json">openapi.json</a> lists them for programs.</p>
      ${overviewHtml(overview)}
    </div></div>
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
