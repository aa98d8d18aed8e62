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
