import type { FileContents } from './chat_files.ts';
import type { Conversation, ConversationMessage, Part } from './chat_schemas.ts';

/** A piece of a message that is not text alone. */
export type ContentPart = Readonly<
  { type: 'text'; text: string } | { type: 'image_url'; image_url: Readonly<{ url: string }> }
>;

/** Text alone is a string: not every endpoint knows parts. */
export type ModelMessage = Readonly<{ role: 'system' | 'user' | 'assistant'; content: string | ContentPart[] }>;

function optionsText(options: readonly string[] | undefined): string {
  return (options ?? []).map((option) => `\n- ${option}`).join('');
}

/** What a part that points at another one is about, in the words of that one. */
function askedIn(conversation: Conversation, part: Part): string {
  const message = conversation.messages.find(({ id }) => id === part.messageId);
  const asked = message?.parts.find(({ id }) => id === part.partId);
  return JSON.stringify(asked?.question ?? asked?.text ?? 'an earlier question');
}

/** Which file it is; where the model was to get its content, that too, or why it is not here. */
function attachmentText(part: Part, files: FileContents | undefined): string {
  const named = `${part.fileName} (${part.mediaType}, ${part.sizeBytes} bytes)`;
  const content = files?.get(part.attachmentId ?? '');
  switch (content?.kind) {
    case 'text': {
      const what = content.cut ? 'The beginning of an attached file' : 'Attached file';
      return `${what}: ${named}\n<content>\n${content.text}\n</content>`;
    }
    case 'none':
      return `Attached file: ${named}. You did not get its content: ${content.why}.`;
    default:
      return `Attached file: ${named}`;
  }
}

function partText(conversation: Conversation, part: Part, files?: FileContents): string {
  switch (part.kind) {
    case 'question':
      return `Question: ${part.question ?? ''}${optionsText(part.options)}`;
    case 'answer': {
      const decided = part.approved === true ? 'approved' : 'rejected';
      const value = part.value === undefined ? decided : [part.value].flat().join(', ');
      return `To ${askedIn(conversation, part)}: ${value}`;
    }
    case 'deferral':
      return `To ${askedIn(conversation, part)}: not answered now`;
    case 'context_note':
      return `Note: ${part.text ?? ''}`;
    case 'approval':
      return `For approval: ${part.text ?? ''}`;
    case 'task':
      return `Task created: ${part.title ?? ''}`;
    case 'action':
      return `Proposed action: ${part.summary ?? ''}`;
    case 'attachment':
      return attachmentText(part, files);
    default:
      return part.text ?? '';
  }
}

/** A message as text for a reader who knows no parts. */
export function messageText(conversation: Conversation, message: ConversationMessage, files?: FileContents): string {
  const texts = message.parts.map((part) => partText(conversation, part, files).trim());
  return texts.filter((text) => text !== '').join('\n\n');
}

/** The message that gets the reply, as text. */
export function askedText(conversation: Conversation): string {
  const asked = conversation.messages.find(({ id }) => id === conversation.userMessageId);
  return asked ? messageText(conversation, asked) : '';
}

/** Who replies, and what came before the messages that are there. */
function systemText(conversation: Conversation, profileName: string, instructions: string | undefined): string {
  const { title, summary } = conversation.chat;
  return [
    instructions ?? `You are ${profileName}, and reply to the people of an organization in a chat.`,
    `The chat is called ${JSON.stringify(title)}.`,
    ...(summary ? [`So far: ${summary}`] : []),
    ...(conversation.earlier ? ['Earlier messages of it are left out.'] : []),
  ].join('\n');
}

/** The images of a message, each after its name: what a picture shows says not which file it is. */
function imageParts(message: ConversationMessage, files: FileContents): ContentPart[] {
  return message.parts.flatMap((part): ContentPart[] => {
    const content = part.kind === 'attachment' ? files.get(part.attachmentId ?? '') : undefined;
    if (content?.kind !== 'image') return [];
    return [
      { type: 'text', text: `${part.fileName}:` },
      { type: 'image_url', image_url: { url: content.url } },
    ];
  });
}

const partsOf = (content: string | ContentPart[]): ContentPart[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

function joined(one: string | ContentPart[], next: string | ContentPart[]): string | ContentPart[] {
  if (typeof one === 'string' && typeof next === 'string') return `${one}\n\n${next}`;
  return [...partsOf(one), ...partsOf(next)];
}

/**
 * The conversation in the roles that models know. Replies that failed without a word are left out, and neighbours of one
 * role are joined: many models insist that user and assistant take turns.
 */
export function modelMessages(
  conversation: Conversation,
  profileName: string,
  instructions: string | undefined,
  files: FileContents,
): readonly ModelMessage[] {
  const messages: ModelMessage[] = [{ role: 'system', content: systemText(conversation, profileName, instructions) }];
  for (const message of conversation.messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const text = messageText(conversation, message, role === 'user' ? files : undefined);
    if (text === '') continue;
    const images = role === 'user' ? imageParts(message, files) : [];
    const content = images.length > 0 ? [...partsOf(text), ...images] : text;
    const last = messages.at(-1);
    if (last?.role === role) messages[messages.length - 1] = { role, content: joined(last.content, content) };
    else messages.push({ role, content });
  }
  return messages;
}
