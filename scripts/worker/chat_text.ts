import type { Conversation, ConversationMessage, Part } from './chat_schemas.ts';

export type ModelMessage = Readonly<{ role: 'system' | 'user' | 'assistant'; content: string }>;

function optionsText(options: readonly string[] | undefined): string {
  return (options ?? []).map((option) => `\n- ${option}`).join('');
}

/** What a part that points at another one is about, in the words of that one. */
function askedIn(conversation: Conversation, part: Part): string {
  const message = conversation.messages.find(({ id }) => id === part.messageId);
  const asked = message?.parts.find(({ id }) => id === part.partId);
  return JSON.stringify(asked?.question ?? asked?.text ?? 'an earlier question');
}

function partText(conversation: Conversation, part: Part): string {
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
    case 'attachment':
      return `Attached file: ${part.fileName} (${part.mediaType}, ${part.sizeBytes} bytes)`;
    default:
      return part.text ?? '';
  }
}

/** A message as text for a reader who knows no parts. */
export function messageText(conversation: Conversation, message: ConversationMessage): string {
  const texts = message.parts.map((part) => partText(conversation, part).trim());
  return texts.filter((text) => text !== '').join('\n\n');
}

/** The message that is to be answered, as text. */
export function askedText(conversation: Conversation): string {
  const asked = conversation.messages.find(({ id }) => id === conversation.userMessageId);
  return asked ? messageText(conversation, asked) : '';
}

/** Who answers, and what came before the messages that are there. */
function systemText(conversation: Conversation, profileName: string, instructions: string | undefined): string {
  const { title, summary } = conversation.chat;
  return [
    instructions ?? `You are ${profileName}, and answer the people of an organization in a chat.`,
    `The chat is called ${JSON.stringify(title)}.`,
    ...(summary ? [`So far: ${summary}`] : []),
    ...(conversation.earlier ? ['Earlier messages of it are left out.'] : []),
  ].join('\n');
}

/**
 * The conversation in the roles that models know. Answers that failed without a word are left out, and neighbours of one
 * role are joined: many models insist that user and assistant take turns.
 */
export function modelMessages(
  conversation: Conversation,
  profileName: string,
  instructions?: string,
): readonly ModelMessage[] {
  const messages: ModelMessage[] = [{ role: 'system', content: systemText(conversation, profileName, instructions) }];
  for (const message of conversation.messages) {
    const content = messageText(conversation, message);
    if (content === '') continue;
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const last = messages.at(-1);
    if (last?.role === role) messages[messages.length - 1] = { role, content: `${last.content}\n\n${content}` };
    else messages.push({ role, content });
  }
  return messages;
}
