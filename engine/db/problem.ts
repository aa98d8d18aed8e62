import { z } from 'zod';

export const issueSchema = z.object({
  path: z.string().describe('The field or parameter, such as `spec.inputs.0.path`. Empty: the request as a whole.'),
  message: z.string(),
  code: z.string(),
});
export type Issue = z.output<typeof issueSchema>;

/** What a transition returns when it changed state and refuses (`{problem: …}`), and what `app.fail` raises. */
export const problemSchema = z.object({
  status: z.int(),
  code: z.string(),
  message: z.string(),
  issues: z.array(issueSchema).optional(),
});

/** A refusal with the HTTP status and machine code (docs/interface.md 7). */
export class Problem extends Error {
  override name = 'Problem';
  readonly status: number;
  readonly code: string;
  readonly issues: readonly Issue[] | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    issues?: readonly Issue[],
    headers?: Record<string, string>,
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.issues = issues;
    this.headers = headers;
  }
}
