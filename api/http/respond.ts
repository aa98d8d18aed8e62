import type { Request, Response } from 'express';
import { Problem } from '../../engine/db/problem.ts';
import { oneLine } from '../../engine/one_line.ts';
import { leavesConnection } from './body.ts';
import { errorEnvelope, type ResponseBody, successEnvelope } from './envelope.ts';
import { forAudience, toProblem } from './errors.ts';
import { requestState } from './request_state.ts';
import { checkResponse } from './response_check.ts';

const LONGEST_TEXT = 400;

export type Responder = Readonly<{
  success(req: Request, res: Response, status: number, body: ResponseBody): void;
  failure(req: Request, res: Response, error: unknown): void;
}>;

function send(req: Request, res: Response, status: number, envelope: unknown): void {
  if (res.headersSent || res.destroyed) return;
  // A string goes out in one piece with the headers; a buffer would be a second write.
  const payload = JSON.stringify(envelope);
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', Buffer.byteLength(payload));
  res.setHeader('Cache-Control', 'no-store');
  // What the client still sends is read or cut by api/http/unread_bodies.ts.
  if (status === 408 || leavesConnection(req, requestState(req))) res.setHeader('Connection', 'close');
  res.end(req.method === 'HEAD' ? undefined : payload);
}

/** A refusal for a person who looks at it in a browser. */
export type FailurePage = Readonly<{ html: string; policy: string }>;

function sendPage(req: Request, res: Response, status: number, { html, policy }: FailurePage): void {
  if (res.headersSent || res.destroyed) return;
  res.status(status).type('html');
  res.set({
    'Content-Length': String(Buffer.byteLength(html)),
    'Content-Security-Policy': policy,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
  });
  if (leavesConnection(req, requestState(req))) res.setHeader('Connection', 'close');
  res.end(req.method === 'HEAD' ? undefined : html);
}

/** A refusal for a person whose program shows a text alone. */
function sendText(req: Request, res: Response, { status, message, issues }: Problem): void {
  if (res.headersSent || res.destroyed) return;
  const [issue] = issues ?? [];
  const text = issue && !message.includes(issue.message) ? `${message}: ${issue.message}` : message;
  const line = `${oneLine(text, LONGEST_TEXT)}\n`;
  res.status(status).type('text/plain');
  res.set({ 'Content-Length': String(Buffer.byteLength(line)), 'Cache-Control': 'no-store' });
  if (leavesConnection(req, requestState(req))) res.setHeader('Connection', 'close');
  res.end(req.method === 'HEAD' ? undefined : line);
}

/** Writes envelopes. With `validate`, responses that their own description does not allow become a logged 500. */
export function createResponder(options: {
  validate: boolean;
  /** Called for what nobody foresaw, and for an unreachable database. */
  report: (error: unknown, req: Request, status: number) => void;
  /** In place of the envelope, where the path is a page of a browser. */
  page?: (req: Request, status: number) => FailurePage | undefined;
}): Responder {
  function failure(req: Request, res: Response, error: unknown): void {
    const state = requestState(req);
    const { problem, unforeseen } = toProblem(error);
    if (unforeseen && !state.signal.aborted) options.report(error, req, problem.status);
    if (res.headersSent) {
      // Too late for an envelope: a cut connection tells the client that the response is not complete.
      res.destroy();
      return;
    }
    const endpoint = state.endpoint;
    let shown = endpoint ? forAudience(problem, endpoint.audience, endpoint.codes) : problem;
    let envelope = errorEnvelope(shown, state);
    const wrong = options.validate && endpoint ? checkResponse(endpoint, shown.status, envelope) : undefined;
    if (wrong) {
      options.report(new Error(`${endpoint?.operationId}: ${wrong}`, { cause: error }), req, 500);
      shown = new Problem(500, 'internal_error', wrong);
      envelope = errorEnvelope(shown, state);
    }
    for (const name of res.getHeaderNames()) {
      // Left by a handler that meant to send something else.
      if (/^(content-(?!security)|etag|last-modified)/.test(name)) res.removeHeader(name);
    }
    for (const [name, value] of Object.entries(shown.headers ?? {})) res.setHeader(name, value);
    const page = options.page?.(req, shown.status);
    if (page) sendPage(req, res, shown.status, page);
    else if (endpoint?.textFor?.test(req.get('user-agent') ?? '')) sendText(req, res, shown);
    else send(req, res, shown.status, envelope);
  }

  function success(req: Request, res: Response, status: number, body: ResponseBody): void {
    const state = requestState(req);
    const envelope = successEnvelope(status, body, state);
    const wrong = options.validate && state.endpoint ? checkResponse(state.endpoint, status, envelope) : undefined;
    if (wrong) failure(req, res, new Error(`${state.endpoint?.operationId}: ${wrong}`));
    else send(req, res, status, envelope);
  }

  return { success, failure };
}
