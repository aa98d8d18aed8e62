import { randomUUID } from 'node:crypto';
import type { Request } from 'express';
import type { Config } from '../../engine/config.ts';
import { API_VERSION } from '../http/openapi/document.ts';
import { escapeHtml, htmlPage, inlineSource } from '../http/page.ts';
import type { Readiness } from './readiness.ts';

const style = `
      :root { color-scheme: light dark; --line: light-dark(#d9dce3, #363b46); --quiet: light-dark(#586070, #a0a8b8); --panel: light-dark(#f5f6f8, #1c1f26); --link: light-dark(#1f56c4, #86b0ff); --good: light-dark(#17713c, #62d08f); --bad: light-dark(#b3261e, #ff8f85); }
      * { box-sizing: border-box; }
      body { margin: 0; font: 16px/1.55 system-ui, sans-serif; background: light-dark(#fff, #14161b); color: light-dark(#1a1d24, #e6e8ee); }
      main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
      h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.02em; }
      h2 { margin: 2.5rem 0 0.5rem; font-size: 1.05rem; }
      p { margin: 0.5rem 0; }
      a { color: var(--link); text-underline-offset: 0.15em; }
      .quiet, figcaption { color: var(--quiet); }
      dl { margin: 0; border-top: 1px solid var(--line); }
      dl > div { display: grid; grid-template-columns: 9.5rem 1fr; gap: 0 1rem; padding: 0.55rem 0; border-bottom: 1px solid var(--line); }
      dt { font-weight: 600; }
      dd { margin: 0; overflow-wrap: anywhere; }
      .good { color: var(--good); }
      .bad { color: var(--bad); }
      figure { margin: 1rem 0; }
      figcaption { margin-bottom: 0.35rem; }
      pre { margin: 0; padding: 0.7rem 0.9rem; background: var(--panel); border: 1px solid var(--line); border-radius: 6px; font: 14px/1.5 ui-monospace, monospace; overflow-x: auto; }
      @media (max-width: 30rem) { main { padding-top: 2rem; } dl > div { grid-template-columns: 1fr; } }
    `;

/** A page without scripts, whose one style is named by its digest. */
export const homePolicy = [
  "default-src 'none'",
  `style-src ${inlineSource(style)}`,
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const owners: Readonly<Record<Config['ownerAuth']['mode'], string>> = {
  open: 'open: anybody on this machine, without a token',
  token: 'with a token of <code>OWNER_TOKENS</code>',
  jwt: 'with a JWT of <code>OWNER_JWT_ISSUER</code>',
};

const storage: Readonly<Record<Readiness['storage'], string>> = {
  reachable: '<span class="good">reachable</span>',
  full: '<span class="bad">full: uploads are refused until there is room</span>',
  unreachable: '<span class="bad">unreachable: the log says why</span>',
};

/** Where this page was asked for: the start of the addresses in the commands. */
function origin(req: Request, config: Config): string {
  const host = req.get('host') ?? '';
  const scheme = req.secure || /^https\b/i.test(req.get('x-forwarded-proto') ?? '') ? 'https' : 'http';
  // The header is the client's word, and people paste what follows into a shell.
  return /^[\w.[\]:-]{1,200}$/.test(host) ? `${scheme}://${host}` : `http://127.0.0.1:${config.port}`;
}

function commands(base: string, config: Config): string {
  const bearer = config.ownerAuth.mode === 'open' ? '' : ' -H "Authorization: Bearer $BUSINESS_RUNNER_OWNER_TOKEN"';
  // Without it the commands ask the port of the settings on this machine.
  const url = base === 'http://127.0.0.1:3000' ? '' : ` --url ${base}`;
  const npmUrl = url && ` --${url}`;
  const list = [
    ['Watch a demo organization finish two tasks', `npm run demo${npmUrl}`],
    ['Create an organization with agents', `npx business-runner org create "Acme"${url}`],
    ['Run an agent for every task', `npm run worker -- --exec ./examples/agents/agent.sh${url}`],
    ['Give it a task, and wait for the result', `npx business-runner task create "Write a haiku" --wait${url}`],
    [
      'Create an organization by HTTP',
      `curl${bearer} -H 'Content-Type: application/json' ${base}/organizations/${randomUUID()} -d '{"slug": "acme", "name": "Acme", "provision": true}'`,
    ],
  ];
  return list
    .map(
      ([caption = '', command = '']) =>
        `<figure><figcaption>${escapeHtml(caption)}</figcaption><pre tabindex="0">${escapeHtml(command)}</pre></figure>`,
    )
    .join('\n      ');
}

function rows(list: readonly (readonly [string, string])[]): string {
  const divs = list.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`);
  return `<dl>\n        ${divs.join('\n        ')}\n      </dl>`;
}

/** What runs: `state` is what readiness says, or why the process is not ready. */
export function homePage(req: Request, config: Config, state: Readiness | string): string {
  const runs =
    typeof state === 'string'
      ? ([['Database', `<span class="bad">${escapeHtml(state)}</span>`]] as const)
      : ([
          ['Database', `<span class="good">reachable</span>, at migration ${state.schemaVersion}`],
          ['Files', storage[state.storage]],
        ] as const);
  // Relative addresses: a proxy may serve this below a path of its own.
  return htmlPage(
    'Business Runner',
    `<link rel="icon" href="docs/icon.svg">
    <style>${style}</style>`,
    `<main>
      <h1>Business Runner</h1>
      <p class="quiet">The control plane on which organizations delegate business work to AI agents.</p>
      <h2>What runs</h2>
      ${rows([
        ['API', `<span class="good">running</span>, version ${API_VERSION}`],
        ...runs,
        ['Owners', owners[config.ownerAuth.mode]],
      ])}
      <h2>Look around</h2>
      ${rows([
        ['<a href="docs">Documentation</a>', 'how to begin, and every call of the API, to read and to try'],
        [
          '<a href="internal/admin">Administration</a>',
          'GraphQL over all organizations, with the token of an administrator',
        ],
        [
          '<a href="readyz">Readiness</a>',
          'whether this process can serve requests; <a href="healthz">health</a> says whether it lives',
        ],
        ['<a href="metrics">Metrics</a>', 'of this process, for Prometheus'],
        ['<a href="openapi.json">OpenAPI</a>', 'the description of the API for programs'],
      ])}
      <h2>Try next</h2>
      <p class="quiet">In a terminal, in the folder from which Business Runner was started.</p>
      ${commands(origin(req, config), config)}
    </main>`,
  );
}
