import { escapeHtml } from '../http/page.ts';

function inline(text: string): string {
  return escapeHtml(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
}

function block(text: string): string {
  const [, code] = /^```\w*\n([\s\S]*)\n```$/.exec(text) ?? [];
  if (code !== undefined) return `<pre tabindex="0">${escapeHtml(code)}</pre>`;
  const [, heading] = /^## (.+)$/.exec(text) ?? [];
  if (heading !== undefined) return `<h2>${inline(heading)}</h2>`;
  if (!text.startsWith('- ')) return `<p>${inline(text)}</p>`;
  const items = text.split('\n').map((line) => `<li>${inline(line.replace(/^- /, ''))}</li>`);
  return `<ul>${items.join('')}</ul>`;
}

/** Our own overview as HTML: of Markdown only what it uses (no blank lines in code), so that no library comes for one text. */
export function overviewHtml(markdown: string): string {
  return markdown
    .split(/\n{2,}/)
    .map(block)
    .join('\n      ');
}
