import { createHash } from 'node:crypto';

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text that a page shows as it is. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}

/** A page. Title and parts are HTML. */
export function htmlPage(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${title}</title>
    ${head}
  </head>
  <body>
    ${body}
  </body>
</html>
`;
}

/** The source of a Content-Security-Policy that allows this text of an inline style or script, and no other. */
export function inlineSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Of each page: a browser that is given none asks for /favicon.ico. */
export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1f56c4"/><path d="M9 7h9a5 5 0 0 1 2.6 9.2A5.4 5.4 0 0 1 18 26H9zm4 4v4h4.4a2 2 0 0 0 0-4zm0 8v3h4.6a1.5 1.5 0 0 0 0-3z" fill="#fff"/></svg>
`;
