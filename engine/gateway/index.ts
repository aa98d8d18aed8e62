// Calls of tools, by executions: a read goes to the provider and its response is kept for calls that come again, a write becomes an
// action. What executes actions is jobs/actions/.

export { type ActionPlace, type Executing, executeAction } from './execute.ts';
export { type ActionFile, actionFiles, hashActionFiles } from './files.ts';
export type { Gateway, GatewayCall } from './gateway.ts';
export { type ProposalRequest, propose } from './propose.ts';
export { readOrBegin } from './read.ts';
export { CALL_MS } from './tools.ts';
export { readTicket } from './upload_ticket.ts';
export {
  beginUpload,
  completeUpload,
  type DeclaredFile,
  type FileCall,
  findFiles,
  invocationFileSchema,
  storedFileSchema,
} from './uploads.ts';
