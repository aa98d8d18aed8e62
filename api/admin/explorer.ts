import type { Request, Response } from 'express';
import type { Config } from '../../engine/config.ts';
import { Problem } from '../../engine/db/problem.ts';
import { adminFinder } from '../http/auth/admin.ts';
import {
  isSameOrigin,
  makeSession,
  SESSION_PATH,
  sessionCookie,
  sessionOwner,
  setSessionCookie,
} from '../http/auth/admin_session.ts';
import { htmlPage, icon } from '../http/page.ts';
import { emptyTab, explorerQueries } from './explorer_queries.ts';

/** Everything from this host: the pages work without the internet. Ruru sets styles in the page, and has workers. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

const iconLink = `<link rel="icon" href="${SESSION_PATH}/assets/icon.svg">`;

const signInStyle = `${iconLink}
    <style>
      body { font: 16px/1.5 system-ui, sans-serif; margin: 15vh auto 0; max-width: 24rem; padding: 0 1rem; color-scheme: light dark; }
      input, button { font: inherit; box-sizing: border-box; width: 100%; margin-top: 0.5rem; padding: 0.5rem; }
      [role=alert] { color: light-dark(#b3261e, #ff8f85); }
    </style>`;

function signInPage(refusal: string | undefined): string {
  return htmlPage(
    'Sign in · Business Runner administration',
    signInStyle,
    `<h1>Administration</h1>
    <form method="post" action="${SESSION_PATH}/sign-in">
      <label for="token">Token of an administrator</label>
      <input id="token" name="token" type="password" autocomplete="off" required autofocus>
      ${refusal === undefined ? '' : `<p role="alert">${refusal}</p>`}
      <button>Sign in</button>
    </form>`,
  );
}

/** In the colors of Ruru, which marks the body with the theme that a person chose. What Ruru advertises is not shown. */
const explorerStyle = `
      :root { color-scheme: light dark; }
      body { margin: 0; display: flex; flex-direction: column; height: 100dvh; background: light-dark(#fff, #212a3b); color: light-dark(#3b4b68, #b7c2d7); }
      body.graphiql-light { color-scheme: light; }
      body.graphiql-dark { color-scheme: dark; }
      #ruru-root { flex: 1; min-height: 0; }
      header { display: flex; align-items: center; gap: 1rem; padding: 0.4rem 1rem; font: 14px/1.4 system-ui, sans-serif; border-bottom: 1px solid light-dark(#e3e6ec, #313b4f); }
      header form { margin-left: auto; }
      header button { white-space: nowrap; }
      .ruru-footer, .graphiql-logo { display: none; }
    `;

const explorerPage = htmlPage(
  'Business Runner administration',
  `${iconLink}
    <link rel="stylesheet" href="${SESSION_PATH}/assets/ruru.css">
    <style>${explorerStyle}</style>
    <script type="module" src="${SESSION_PATH}/assets/start.js"></script>`,
  `<header>
      <span>Header <code>X-Organization-Id</code>: one organization alone</span>
      <form method="post" action="${SESSION_PATH}/sign-out"><button>Sign out</button></form>
    </header>
    <div id="ruru-root"></div>`,
);

/** What Ruru's own page has inline, which our policy does not allow. */
const startScript = `const worker = (file) => new Worker(new URL(file, import.meta.url), { type: 'module' });
globalThis.MonacoEnvironment = {
  getWorker: (_, label) =>
    worker(label === 'json' ? 'jsonWorker.js' : label === 'graphql' ? 'graphqlWorker.js' : 'editorWorker.js'),
};
const { React, createRoot, Ruru } = await import('./ruru.js');
createRoot(document.getElementById('ruru-root')).render(
  React.createElement(Ruru, ${JSON.stringify({
    endpoint: `${SESSION_PATH}/graphql`,
    staticPath: `${SESSION_PATH}/assets/`,
    defaultQuery: emptyTab,
    defaultTabs: explorerQueries.map((query) => ({ query })),
  })}),
);
`;

/** With `no-referrer` browsers name no origin for the forms of a page either, and both forms here need theirs. */
const pageHeaders = {
  'Content-Security-Policy': policy,
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

function sendPage(res: Response, status: number, html: string): void {
  res.status(status).set(pageHeaders).type('html').end(html);
}

/** The explorer for who has signed in, the way to sign in for others. */
export function showExplorer(config: Config, req: Request, res: Response): void {
  const session = sessionCookie(req);
  const known = session !== undefined && sessionOwner(config.adminTokens, session) !== undefined;
  sendPage(res, 200, known ? explorerPage : signInPage(undefined));
}

/** A form is posted by our own page alone: another could sign a person in as somebody else. */
function requireOwnPage(req: Request): void {
  if (!isSameOrigin(req)) throw new Problem(403, 'forbidden', 'Requests from other web sites are refused.');
}

/** Takes the token of the form for a session. @throws Problem 403 */
export function signIn(config: Config, req: Request, res: Response, form: string): void {
  requireOwnPage(req);
  const admin = adminFinder(config)(new URLSearchParams(form).get('token')?.trim() ?? '');
  if (!admin) {
    sendPage(res, 401, signInPage('This is no token of an administrator.'));
    return;
  }
  res.set({ 'Set-Cookie': setSessionCookie(req, makeSession(admin.token)), 'Cache-Control': 'no-store' });
  res.redirect(303, SESSION_PATH);
}

/** Ends the session of this browser. @throws Problem 403 */
export function signOut(req: Request, res: Response): void {
  requireOwnPage(req);
  res.set({ 'Set-Cookie': setSessionCookie(req, undefined), 'Cache-Control': 'no-store' });
  res.redirect(303, SESSION_PATH);
}

/** A file of Ruru, or the script that starts it. They are the same for everybody, and hold no data. @throws Problem 404 */
export async function sendAsset(req: Request, res: Response, file: string): Promise<void> {
  if (file === 'start.js') {
    res.set('Cache-Control', 'no-cache').type('js').end(startScript);
    return;
  }
  if (file === 'icon.svg') {
    res.set('Cache-Control', 'no-cache').type('svg').end(icon);
    return;
  }
  // Loaded by the first page: it is several megabytes.
  const { getStaticFile } = await import('ruru/static');
  const found = await getStaticFile({
    staticPath: '/',
    urlPath: `/${file}`,
    acceptEncoding: req.get('accept-encoding'),
    disallowDevAssets: true,
  });
  if (!found || file.endsWith('.map')) throw new Problem(404, 'not_found', 'There is nothing at this path.');
  res.set({ ...found.headers, 'Cache-Control': 'no-cache', Vary: 'Accept-Encoding' });
  if (req.get('if-none-match') === found.headers['etag']) res.status(304).removeHeader('content-length');
  res.end(res.statusCode === 304 ? undefined : found.content);
}
