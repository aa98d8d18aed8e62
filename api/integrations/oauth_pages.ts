import type { Request, Response } from 'express';
import { z } from 'zod';
import { Problem } from '../../engine/db/problem.ts';
import { OAUTH_RESULTS } from '../../engine/integration_states.ts';
import { beginFlow, type FlowOutcome, finishFlow, isAuthorized, readTicket } from '../../engine/integrations/index.ts';
import { providers } from '../../engine/providers/index.ts';
import { ownerAuthentication } from '../http/auth/owner.ts';
import { type Context, type Endpoint, endpoint } from '../http/endpoint.ts';
import type { FailurePage } from '../http/respond.ts';
import type { Services } from '../services.ts';
import { publicUrl } from './oauth.ts';
import { beginPage, downPage, laterPage, pagePolicy, resultPage, strangePage } from './oauth_html.ts';

// The browser's side of an authorization: the page that begins it, and where the provider sends the browser back to.

const BEGIN = '/oauth/begin/{ticket}';
const FLOW_S = 600;

/** Any text: one that is not a ticket leads to a page too. */
const ticket = z.string();
const html = { stream: true, mediaType: 'text/html', description: 'A page.' } as const;
const shared = { audience: 'public', tag: 'Integrations', response: html } as const;

function sendPage(
  { res, services }: Pick<Context, 'res' | 'services'>,
  text: string,
  form = false,
  status = 200,
): void {
  const { allowPrivateAddresses } = services.config;
  res
    .status(status)
    .set({
      'Content-Security-Policy': pagePolicy(form ? 'providers' : 'none', allowPrivateAddresses),
      'Cache-Control': 'no-store',
      // The address holds the ticket; our own form has to say where it comes from.
      'Referrer-Policy': 'same-origin',
    })
    .type('html')
    .end(text);
}

const shownSchema = z.object({ integration: z.string().max(63).optional(), result: z.enum(OAUTH_RESULTS) });

/** A cookie for each flow: two tabs at once have one each. */
const cookieName = (flowId: string) => `runner_oauth_${flowId.replaceAll('-', '')}`;

function setCookie(res: Response, base: string, flowId: string, value: string): void {
  const { protocol, pathname } = new URL(base);
  res.cookie(cookieName(flowId), value, {
    path: `${pathname.replace(/(?<!\/)\/+$/, '')}/oauth/`,
    httpOnly: true,
    sameSite: 'lax',
    secure: protocol === 'https:',
    maxAge: FLOW_S * 1_000,
  });
}

function cookieOf(req: Request, flowId: string): string | undefined {
  const name = `${cookieName(flowId)}=`;
  const pair = (req.get('cookie') ?? '').split(/;\s*/).find((one) => one.startsWith(name));
  return pair?.slice(name.length);
}

/** The button of our own page, and no form of another site. */
function isOwnForm(req: Request, base: string): boolean {
  const site = req.get('sec-fetch-site');
  if (site !== undefined) return site === 'same-origin';
  const origin = req.get('origin');
  return origin === undefined || origin === new URL(base).origin;
}

/** Where a browser goes at last: the console, or a page of ours. */
function resultUrl(config: Services['config'], base: string, { integrationKey, result }: FlowOutcome): string {
  const query = new URLSearchParams({ ...(integrationKey === null ? {} : { integration: integrationKey }), result });
  return `${config.integrations.frontendUrl ?? base}/integrations/callback?${query}`;
}

function redirect(res: Response, location: string): void {
  // Also after a POST, the browser gets it.
  res.status(303).set({ Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' }).end();
}

const callbackUrl = (base: string) => (provider: string) => `${base}/oauth/${provider}/callback`;

/** Who is signed in, where the request says so: a browser that comes back from a provider rarely does. */
async function starterOf({ config }: Services, req: Request): Promise<string | null> {
  if (req.get('authorization') === undefined) return null;
  try {
    const { subject } = await ownerAuthentication(config)(req, false);
    return subject;
  } catch {
    return null;
  }
}

function callbackEndpoint(provider: string): Endpoint {
  return endpoint({
    ...shared,
    method: 'get',
    path: `/oauth/${provider}/callback`,
    operationId: `callback_${provider}`,
    summary: 'Where the provider sends the browser back to',
    anyQuery: true,
    response: { ...html, description: 'A redirect.' },
    async handler({ services, req, res, log, signal }) {
      // Asks what there is, and does nothing.
      if (req.method === 'HEAD') return void res.set('Cache-Control', 'no-store').end();
      const base = publicUrl(services.config, req);
      const { searchParams: parameters } = new URL(req.originalUrl, base);
      let outcome: FlowOutcome = { integrationKey: null, result: 'failed' };
      try {
        const starter = await starterOf(services, req);
        const browserOf = (flowId: string) => cookieOf(req, flowId);
        // A browser that leaves now has authorized: what it began is ended all the same.
        outcome = await finishFlow(services.integrations, { provider, parameters, browserOf, starter });
      } catch (error) {
        if (!signal.aborted) log.error({ err: error }, 'a callback failed');
      }
      redirect(res, resultUrl(services.config, base, outcome));
    },
  });
}

/** What a person sees at these addresses where they are mistyped, or the service fails; undefined: no browser asks, or elsewhere. */
export function flowFailurePage(req: Request, status: number): FailurePage | undefined {
  const isPage =
    /^\/(?:oauth|integrations\/callback)(?:[/%]|$)/.test(req.path) && /^(?:GET|HEAD|POST)$/.test(req.method);
  if (!isPage || req.accepts(['html', 'json']) !== 'html') return undefined;
  return { html: status >= 500 ? downPage() : strangePage(), policy: pagePolicy('none', false) };
}

/** Pages of authorizations. */
export function flowPageEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      ...shared,
      method: 'get',
      path: BEGIN,
      operationId: 'getAuthorizationPage',
      summary: 'What is about to be authorized',
      params: { ticket },
      // Mail programs and messengers add parameters to links.
      anyQuery: true,
      secretPath: true,
      async handler(context) {
        const { services, params } = context;
        const flow = await readTicket(services.integrations, params.ticket);
        const provider = flow === null ? undefined : providers.get(flow.provider);
        if (flow === null || provider === undefined) {
          sendPage(context, resultPage('expired', undefined), false, 404);
        } else sendPage(context, beginPage(flow, provider), true);
      },
    }),
    endpoint({
      ...shared,
      method: 'post',
      path: BEGIN,
      operationId: 'beginAuthorization',
      summary: 'Goes on to the provider',
      params: { ticket },
      anyQuery: true,
      secretPath: true,
      async handler(context) {
        const { services, params, req, res, log, signal } = context;
        const base = publicUrl(services.config, req);
        if (!isOwnForm(req, base)) return sendPage(context, resultPage('failed', undefined), false, 403);
        try {
          const options = { redirectUri: callbackUrl(base), signal };
          const begun = await beginFlow(services.integrations, params.ticket, options);
          if (begun === null) return sendPage(context, resultPage('expired', undefined), false, 404);
          setCookie(res, base, begun.flow.id, begun.browser);
          redirect(res, begun.url.href);
        } catch (error) {
          log.warn({ err: error }, 'an authorization did not begin');
          if (error instanceof Problem && error.status === 503) {
            res.set(error.headers ?? {});
            return sendPage(context, laterPage(), true, 503);
          }
          sendPage(context, resultPage('failed', undefined), false, 502);
        }
      },
    }),
    endpoint({
      ...shared,
      method: 'get',
      path: '/integrations/callback',
      operationId: 'getAuthorizationResult',
      summary: 'How an authorization ended',
      description: 'By `result` and `integration` of the query. Any other query leads to a page too.',
      anyQuery: true,
      handler(context) {
        const { searchParams } = new URL(context.req.originalUrl, 'http://page');
        const shown = shownSchema.safeParse(Object.fromEntries(searchParams));
        if (shown.success) sendPage(context, resultPage(shown.data.result, shown.data.integration));
        else sendPage(context, strangePage(), false, 400);
      },
    }),
    ...[...providers.values()].filter(isAuthorized).map(({ key }) => callbackEndpoint(key)),
  ];
}
