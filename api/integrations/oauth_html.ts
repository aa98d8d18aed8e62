import type { Flow, FlowOutcome } from '../../engine/integrations/index.ts';
import type { Provider } from '../../engine/providers/index.ts';
import { escapeHtml, htmlPage, inlineSource } from '../http/page.ts';

const style = `
      :root { color-scheme: light dark; --line: light-dark(#d9dce3, #363b46); --quiet: light-dark(#586070, #a0a8b8); --link: light-dark(#1f56c4, #86b0ff); }
      * { box-sizing: border-box; }
      body { margin: 0; font: 16px/1.55 system-ui, sans-serif; background: light-dark(#fff, #14161b); color: light-dark(#1a1d24, #e6e8ee); }
      main { max-width: 34rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
      h1 { margin: 0 0 1.25rem; font-size: 1.6rem; line-height: 1.25; letter-spacing: -0.02em; }
      dl { margin: 0 0 1.5rem; border-top: 1px solid var(--line); }
      dl > div { display: grid; grid-template-columns: 9rem 1fr; gap: 0 1rem; padding: 0.55rem 0; border-bottom: 1px solid var(--line); }
      dt { color: var(--quiet); }
      dd { margin: 0; overflow-wrap: anywhere; }
      button { font: inherit; font-weight: 600; padding: 0.6rem 1.1rem; border: 0; border-radius: 6px; background: var(--link); color: light-dark(#fff, #14161b); cursor: pointer; }
      .quiet { color: var(--quiet); }
    `;

/**
 * Pages without scripts. The button's form comes to us, and its redirect goes to the provider: browsers hold a form's redirects
 * to `form-action` too, and the server of an MCP server may be any.
 */
export function pagePolicy(forms: 'none' | 'providers', allowPrivateAddresses: boolean): string {
  const local = allowPrivateAddresses ? ' http://127.0.0.1:* http://localhost:*' : '';
  return [
    "default-src 'none'",
    `style-src ${inlineSource(style)}`,
    "base-uri 'none'",
    forms === 'none' ? "form-action 'none'" : `form-action 'self' https:${local}`,
    "frame-ancestors 'none'",
  ].join('; ');
}

function page(title: string, body: string): string {
  const name = escapeHtml(title);
  return htmlPage(name, `<style>${style}</style>`, `<main>\n      <h1>${name}</h1>\n      ${body}\n    </main>`);
}

const row = (name: string, value: string) => `<div><dt>${name}</dt><dd>${escapeHtml(value)}</dd></div>`;

/** What somebody is about to authorize, and the button that goes on to the provider. */
export function beginPage(flow: Flow, { title, services }: Provider): string {
  const chosen = services.filter(({ key }) => flow.services.includes(key)).map((service) => service.title);
  const rows = [
    row('Organization', flow.organizationName),
    row('Integration', flow.integrationKey),
    ...(chosen.length === 0 ? [] : [row('Services', chosen.join(', '))]),
    row('Access', flow.accessMode === 'full' ? 'read and write' : 'read only'),
    ...(flow.replaceAccount ? [row('Account', 'may replace the connected one')] : []),
  ];
  return page(
    `Connect ${title}`,
    `<dl>${rows.join('')}</dl>
      <form method="post"><button type="submit">Continue to ${escapeHtml(title)}</button></form>
      <p class="quiet">Agents of this organization act with what you allow there. Go on only if you began this yourself.</p>`,
  );
}

const results: Readonly<Record<FlowOutcome['result'], readonly [title: string, text: string]>> = {
  connected: ['Connected', 'The integration is connected. You can close this page.'],
  denied: ['Not connected', 'The authorization was denied. Nothing has changed.'],
  failed: ['Not connected', 'The authorization failed. Begin again, in one browser; the log of the service says why.'],
  expired: ['Not connected', 'The authorization took too long, or was used before. Begin again.'],
  conflict: [
    'Not connected',
    'The integration has changed meanwhile, or the account is another than the connected one. Look at it, and begin again.',
  ],
};

export function resultPage(result: FlowOutcome['result'], integrationKey: string | undefined): string {
  const [title, text] = results[result];
  const about = integrationKey === undefined ? '' : `<dl>${row('Integration', integrationKey)}</dl>\n      `;
  return page(title, `${about}<p>${text}</p>`);
}

/** For an address that is incomplete, or not one of ours. */
export function strangePage(): string {
  return page('Nothing to see', '<p>This address is not complete. Go back to where you began, and begin again.</p>');
}

/** The service itself cannot go on at the moment. */
export function downPage(): string {
  return page('Not now', '<p>The service cannot go on at the moment. Load this page again in a minute.</p>');
}

/** The provider does not respond, or limits us. The ticket is still valid. */
export function laterPage(): string {
  return page(
    'Not begun yet',
    `<p>The provider cannot be asked at the moment. This link still works: try again in a minute.</p>
      <form method="post"><button type="submit">Try again</button></form>`,
  );
}
