// A push, in order: pushAdvertisement (what the client may build on), readPushRequest (what it asks for), refusalsOf, stagePush (its
// pack, checked in a private repository), proposePush (the stored pack, and an action), reportOf (the response to the client). Then, after
// the approval and by a job, prepareGitPush and `send`; lookUpGitPush where nothing said what became of it.

export { pushAdvertisement } from './advertisement.ts';
export { type Git, openGit } from './git.ts';
export { MirrorTooLargeError } from './mirrors.ts';
export { type GitService, openAdvertisement, openUploadPack } from './origin.ts';
export { PktLineError } from './pkt_line.ts';
export { GitMissingError } from './program.ts';
export { proposedSchema } from './propose.ts';
export {
  lookUpGitPush,
  PackUnusableError,
  type PreparedPush,
  type PushLookUp,
  type PushOutcome,
  prepareGitPush,
} from './push.ts';
export { PACK_ARGUMENT, PUSH_TOOL, type PushArguments, pushArguments } from './push_action.ts';
export { type ReceiveOptions, receivePack } from './receive_pack.ts';
export { type Remote, remoteOf } from './remote.ts';
