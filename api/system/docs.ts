import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { type EncodedContent, encodeContent, once } from '../http/encoded.ts';

/** Where the files of swagger-ui-dist lie. */
const folder = path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

export const docsFiles = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png', 'start.js'] as const;
type DocsFile = (typeof docsFiles)[number];

export const docsTypes: Readonly<Record<DocsFile, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
  'start.js': 'text/javascript; charset=utf-8',
};

/** Everything from this host: the page works without the internet. Swagger UI sets styles in the page. */
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

export const docsPage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Business Runner API</title>
    <link rel="icon" href="docs/favicon-32x32.png">
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

const script = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'none',
  persistAuthorization: false,
  validatorUrl: null,
});
`;

const fromFolder = (file: DocsFile) => once(async () => encodeContent(await readFile(path.join(folder, file))));
const assets: Readonly<Record<DocsFile, () => Promise<EncodedContent>>> = {
  'swagger-ui.css': fromFolder('swagger-ui.css'),
  'swagger-ui-bundle.js': fromFolder('swagger-ui-bundle.js'),
  'favicon-32x32.png': fromFolder('favicon-32x32.png'),
  'start.js': once(() => encodeContent(script)),
};

/** A file of the page, read and compressed when it is first asked for. */
export function docsAsset(file: DocsFile): Promise<EncodedContent> {
  return assets[file]();
}
